"""A batch: what the model makes, all at once, of what its messages come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.features.statistics import FEATURES
from pipeline.model.label_policy import Policy
from pipeline.model.model import Judgements, Model, Plays
from pipeline.records.outputs import Example, Share
from pipeline.task import encoding as lines
from pipeline.task.encoding import NOTHING, Lines, Said
from pipeline.task.plan import DeadLetter, Lessons, Plan
from pipeline.task.sharing import Publication


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
    cuts = set(range(len(taken))) | set(plan.undecided() if policy else ())
    predictions = outcomes = requests = NOTHING
    for piece in plan.cut(sorted(cuts)):
        if not (piece.event_ids or piece.closed):
            continue
        number = piece.folded - plan.folded
        shared = taken[number] if piece.closed and number < len(taken) else None
        model.take_over(shared or ())
        asked: list[bool] | None = None
        if policy is not None:
            piece.withhold(policy)
            counters["unasked"] += piece.unasked()
        plays, lessons = piece.plays(), piece.lessons()
        judged = _walk(piece, plays, lessons, model)
        if policy is not None:
            asked, wanted = lines.requested(piece, judged, policy, counters)
            requests = requests.then(wanted)
        written = lines.predicted(piece, judged, asked)
        predictions = predictions.then(written)
        said = lines.said(piece, plays, judged, written, asked)
        _note(piece, judged, said, asked)
        outcomes = outcomes.then(lines.closed(piece, lessons, said, shared, model))
        if publication is not None:
            for example in _examples(piece, plays, lessons, judged):
                publication.add(example)
    told: Sequence[Share] = () if publication is None else publication.take()
    return Batch(predictions, outcomes, plan.dead_letters, plan.steps, told, requests)


def _walk(plan: Plan, plays: Plays, lessons: Lessons, model: Model) -> Judgements:
    """Judge, and teach the model. Plays are judged, or learned, or both."""
    n, turns, places = len(plays.users), plan.turns(), lessons.places
    labels, ratios = np.zeros(n, dtype=np.bool_), np.zeros(n)
    labels[places], ratios[places] = lessons.labels, lessons.ratios
    order, taken = np.empty(len(turns), dtype=np.int64), np.ones(len(turns), dtype=np.bool_)
    order[~turns], order[turns] = np.arange(len(plan.carried), n), n + places
    taken[turns] = lessons.taught
    judged = model.walk(order[taken], plays, plan.known(), labels, ratios)
    model.folded += len(places)
    return judged


def _note(plan: Plan, judged: Judgements, said: Said, asked: list[bool] | None) -> None:
    """Let those that wait know what the model says of them."""
    first, begin, texts, ends = plan.first, len(plan.carried), said.texts, said.ends
    features, size = judged.features.tobytes(), judged.features.itemsize * len(FEATURES)
    for prediction in plan.waiting:
        row = prediction.sequence - first
        prediction.score = judged.scores[row]
        prediction.features = features[row * size : (row + 1) * size]
        prediction.opening = texts[begin + row][: ends[begin + row]]
        prediction.conclusion = said.conclusions[begin + row]
        prediction.asked = None if asked is None else asked[row]


def _examples(plan: Plan, plays: Plays, lessons: Lessons, judged: Judgements) -> Iterator[Example | None]:
    """What each closing teaches, if anything."""
    features = np.concatenate([plan.known(), judged.features])
    for place, watched, ratio in zip(lessons.places.tolist(), plan.watched, plan.watch_ratios, strict=True):
        play = (plays.users[place], plays.videos[place], plays.timestamps[place], features[place].tolist())
        yield None if watched is None else Example(*play, watched, ratio or 0.0)
