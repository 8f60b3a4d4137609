"""A batch: what its messages come to, and what the model makes of that, all at once."""

from __future__ import annotations

import struct
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline import decimals
from pipeline.join import Pending
from pipeline.model import Judgements, Model
from pipeline.policy import Policy
from pipeline.records import (
    Ending,
    Example,
    Id,
    LabelRequest,
    Prediction,
    Share,
    Source,
    conclusion,
    encode,
    encode_all,
    encode_endings,
    opening,
    plain_opening,
)
from pipeline.sharing import Publication
from pipeline.statistics import FEATURES


class DeadLetter(NamedTuple):
    """A message that could not be used, and why."""

    source: Source
    fault: str
    reason: str


class Closing(msgspec.Struct, gc=False):
    """The end of a prediction's wait."""

    prediction: Pending
    watched: bool | None
    """What is learned; None for nothing. A policy has its say once the prediction is judged."""
    watch_ratio: float | None
    """The label's, if one came in time."""
    label_timestamp: int | None
    """Its time."""
    sequence: int
    """The outcome's."""
    shared: list[Share] | None = None
    """What was taken over from other partitions right before, if anything."""

    @property
    def example(self) -> Example | None:
        """What it teaches, if anything, once the prediction is judged."""
        if self.watched is None:
            return None
        prediction = self.prediction
        features = np.frombuffer(prediction.features).tolist()
        play = (prediction.user_id, prediction.video_id, prediction.timestamp, features)
        return Example(*play, self.watched, self.watch_ratio or 0.0)


@dataclass
class Plan:
    """What messages, and the time that has passed, come to before the model was asked."""

    predictions: list[Pending] = field(default_factory=list)
    """To be judged."""
    closings: list[Closing] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    """Steps: i judges prediction i, ~i learns from closing i."""
    dead_letters: list[DeadLetter] = field(default_factory=list)
    steps: int = 0
    """Messages processed, and predictions and early labels whose time ran out."""

    def predict(self, prediction: Pending) -> None:
        """Judge this next."""
        self.order.append(len(self.predictions))
        self.predictions.append(prediction)

    def close(self, closing: Closing) -> None:
        """Learn from this next."""
        if closing.watched is not None:
            self.order.append(~len(self.closings))
        self.closings.append(closing)

    def extend(
        self, predictions: list[Pending], closings: list[Closing], order: NDArray[np.int64], steps: int
    ) -> None:
        """Judge and learn these next, whose order counts from 0."""
        first, last = len(self.predictions), len(self.closings)
        self.order += np.where(order >= 0, order + first, order - last).tolist()
        self.predictions += predictions
        self.closings += closings
        self.steps += steps

    def cut(self, numbers: Sequence[int]) -> list[Plan]:
        """What comes before the closings of these numbers, ascending, and after the last: one piece more.

        A closing is the first of a piece, with what comes after it.
        """
        if not numbers:
            return [self]
        shown = [*self._shown_before(numbers).tolist(), len(self.predictions)]
        learned = np.cumsum([0, *(closing.watched is not None for closing in self.closings)])
        order = np.array(self.order, dtype=np.int64)
        pieces, first_shown, first = [], 0, 0
        for last_shown, last in zip(shown, [*numbers, len(self.closings)], strict=True):
            steps = order[first_shown + learned[first] : last_shown + learned[last]]
            steps = np.where(steps >= 0, steps - first_shown, steps + first)
            pieces.append(
                Plan(self.predictions[first_shown:last_shown], self.closings[first:last], steps.tolist())
            )
            first_shown, first = last_shown, last
        return pieces

    def undecided(self) -> list[int]:
        """The closings before which to cut, so that each piece closes what was judged in an earlier one."""
        if not (self.predictions and self.closings):
            return []
        begin = self.predictions[0].sequence
        shown, judged, numbers = self._shown_before(range(len(self.closings))).tolist(), 0, []
        for number, closing in enumerate(self.closings):
            if closing.prediction.sequence - begin >= judged:
                judged = shown[number]
                numbers.append(number)
        return numbers

    def _shown_before(self, numbers: Sequence[int]) -> NDArray[np.int64]:
        """How many predictions come before each of these closings."""
        versions = [prediction.model_version for prediction in self.predictions]
        sequences = [self.closings[number].sequence for number in numbers]
        return np.searchsorted(versions, sequences, side="right")

    def withhold(self, policy: Policy) -> None:
        """Teach nothing where the policy says so; all predictions closed here have to be judged."""
        for closing in self.closings:
            if not policy.teaches(closing.prediction.asked, closing.label_timestamp is not None):
                closing.watched = None
        self.order = [step for step in self.order if step >= 0 or self.closings[~step].watched is not None]


class Lines(NamedTuple):
    """Records of a partition as they go into a topic, in the order of their sequences."""

    first: int
    """The sequence of the first."""
    values: list[bytes]
    users: list[Id]
    """Whose they are."""
    timestamps: list[int]
    """Event times, in milliseconds."""

    def then(self, later: Lines) -> Lines:
        """These and the next ones."""
        if not (self.values and later.values):
            return self if self.values else later
        return Lines(
            self.first,
            self.values + later.values,
            self.users + later.users,
            self.timestamps + later.timestamps,
        )


NOTHING: Final = Lines(0, [], [], [])


@dataclass(frozen=True)
class Batch:
    """What came of the messages merged, and of the time that has passed, since the last batch."""

    predictions: Lines = NOTHING
    outcomes: Lines = NOTHING
    dead_letters: Sequence[DeadLetter] = ()
    steps: int = 0
    """Messages processed, and predictions and early labels whose time ran out."""
    shares: Sequence[Share] = ()
    """What the other partitions are told."""
    requests: Lines = NOTHING
    """Predictions whose label is asked for."""

    @property
    def empty(self) -> bool:
        """Whether nothing happened."""
        return not (self.steps or self.shares)


def settle(
    plan: Plan,
    model: Model,
    counters: Counter[str],
    *,
    taken: Sequence[list[Share]] = (),
    publication: Publication | None = None,
    policy: Policy | None = None,
) -> Batch:
    """Have everything judged and learned, in the order planned.

    Parameters
    ----------
    plan
        What is to be done.
    model
        What does it.
    counters
        Those of the partition. Under a policy, labels asked for and labels that came unasked are counted.
    taken
        What is folded right before each of the first closings, and goes into their outcomes.
    publication
        Who else is to be told.
    policy
        Decides which labels are asked for; None where all are learned as they come.
    """
    for closing, shares in zip(plan.closings, taken, strict=False):  # there may be fewer shares
        closing.shared = shares
    cuts = set(range(len(taken))) | set(plan.undecided() if policy else ())
    predictions = outcomes = requests = NOTHING
    for piece in plan.cut(sorted(cuts)):
        if not (piece.predictions or piece.closings):
            continue
        if piece.closings:
            model.take_over(piece.closings[0].shared or ())
        if policy is not None:
            piece.withhold(policy)
            counters["unasked"] += sum(map(_unasked, piece.closings))
        judged = _walk(piece, model)
        if policy is not None:
            requests = requests.then(_requests(piece.predictions, judged, policy, counters))
        predictions = predictions.then(_predictions(piece.predictions, judged))
        outcomes = outcomes.then(_outcomes(piece.closings, model))
    told: Sequence[Share] = ()
    if publication is not None:
        for closing in plan.closings:
            publication.add(closing.example)
        told = publication.take()
    return Batch(predictions, outcomes, plan.dead_letters, plan.steps, told, requests)


def _unasked(closing: Closing) -> bool:
    """Whether a label came that was not asked for."""
    return closing.prediction.asked is False and closing.label_timestamp is not None


def _walk(plan: Plan, model: Model) -> Judgements:
    """Judge, and teach the model.

    Plays are judged, or learned, or both. Those that were judged in an earlier batch come last, with the
    features that they had then.
    """
    predictions, closings = plan.predictions, plan.closings
    first = predictions[0].sequence if predictions else sys.maxsize
    sequences = np.array([closing.prediction.sequence for closing in closings], dtype=np.int64)
    earlier = sequences < first
    carried = [closing.prediction for closing in closings if closing.prediction.sequence < first]
    played = np.where(earlier, len(predictions) + np.cumsum(earlier) - 1, sequences - first)
    plays = [*predictions, *carried]
    labels, ratios = np.zeros(len(plays), dtype=np.bool_), np.zeros(len(plays))
    labels[played] = [bool(closing.watched) for closing in closings]
    ratios[played] = [closing.watch_ratio or 0.0 for closing in closings]
    order = np.array(plan.order, dtype=np.int64)
    learning = order < 0
    order[learning] = len(plays) + played[~order[learning]]
    features = np.frombuffer(b"".join([prediction.features for prediction in carried]))
    judged = model.walk(order, plays, features.reshape(len(carried), len(FEATURES)), labels, ratios)
    model.folded += len(closings)
    return judged


def _requests(
    predictions: list[Pending], judged: Judgements, policy: Policy, counters: Counter[str]
) -> Lines:
    """Decide of which predictions the label is asked for, and write that down."""
    first, values, chosen = counters["asked"], [], []
    for prediction, features, score in zip(predictions, judged.features.tolist(), judged.scores, strict=True):
        prediction.asked = policy.asks(
            prediction.event_id, score, features, predicted=prediction.sequence, asked=counters["asked"]
        )
        if prediction.asked:
            values.append(
                encode(
                    LabelRequest(
                        prediction.event_id,
                        prediction.user_id,
                        prediction.video_id,
                        prediction.timestamp,
                        score,
                        prediction.sequence,
                        counters["asked"],
                    )
                )
            )
            chosen.append(prediction)
            counters["asked"] += 1
    return Lines(first, values, [each.user_id for each in chosen], [each.timestamp for each in chosen])


def _predictions(predictions: list[Pending], judged: Judgements) -> Lines:
    """Note what was said of each, and write it down."""
    if not predictions:
        return NOTHING
    users, timestamps = [each.user_id for each in predictions], [each.timestamp for each in predictions]
    asked = [each.asked for each in predictions]
    values = encode_all(
        map(
            Prediction,
            [each.event_id for each in predictions],
            users,
            [each.video_id for each in predictions],
            timestamps,
            judged.scores,
            judged.probabilities,
            [score > 0.0 for score in judged.scores],
            map(msgspec.Raw, decimals.encode_rows(judged.features)),
            [each.model_version for each in predictions],
            [each.sequence for each in predictions],
            judged.challengers,
            asked,
        )
    )
    raw = struct.iter_unpack(f"{judged.features[0].nbytes}s", judged.features.tobytes())
    ends_with_number = judged.challengers[0] is None and asked[0] is None
    openings = map(plain_opening if ends_with_number else opening, values)
    for prediction, score, (features,), begin in zip(predictions, judged.scores, raw, openings, strict=True):
        prediction.score = score
        prediction.features = features
        prediction.opening = begin
    if not ends_with_number:
        for prediction, value in zip(predictions, values, strict=True):
            prediction.conclusion = conclusion(value)
    return Lines(predictions[0].sequence, values, users, timestamps)


def _outcomes(closings: list[Closing], model: Model) -> Lines:
    """Predictions joined with their labels, and the losses of those that were learned."""
    if not closings:
        return NOTHING
    predictions = [closing.prediction for closing in closings]
    learned = [closing.watched for closing in closings]
    ratios = [closing.watch_ratio for closing in closings]
    known_at = [closing.label_timestamp for closing in closings]
    scores = [prediction.score for prediction in predictions]
    losses = model.losses(
        np.array(scores), np.array(learned, dtype=np.bool_), np.array([ratio or 0.0 for ratio in ratios])
    )
    endings = encode_endings(
        map(
            Ending,
            [prediction.sequence for prediction in predictions],
            ratios,
            learned,
            known_at,
            [
                None if label is None else label == (score > 0.0)
                for label, score in zip(learned, scores, strict=True)
            ],
            [None if label is None else loss for label, loss in zip(learned, losses, strict=True)],
            ["expired" if moment is None else "labelled" for moment in known_at],
            [closing.sequence for closing in closings],
            [closing.shared for closing in closings],
        )
    )
    return Lines(
        closings[0].sequence,
        [
            prediction.opening + ending + prediction.conclusion
            for prediction, ending in zip(predictions, endings, strict=True)
        ],
        [prediction.user_id for prediction in predictions],
        [prediction.timestamp for prediction in predictions],
    )
