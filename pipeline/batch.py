"""A batch: what the model makes, all at once, of what its messages come to."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline import lines
from pipeline.lines import NOTHING, Lines
from pipeline.model import Judgements, Model
from pipeline.plan import Closing, DeadLetter, Plan
from pipeline.policy import Policy
from pipeline.records import Share
from pipeline.sharing import Publication
from pipeline.statistics import FEATURES


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
            requests = requests.then(lines.requested(piece.predictions, judged, policy, counters))
        predictions = predictions.then(lines.predicted(piece.predictions, judged))
        outcomes = outcomes.then(lines.closed(piece.closings, model))
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
