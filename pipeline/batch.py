"""A batch: what its messages come to, and what the model makes of that, all at once."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipeline.model import Model
from pipeline.records import Outcome, Prediction, Source


class DeadLetter(NamedTuple):
    """A message that could not be used, and why."""

    source: Source
    fault: str
    reason: str


class Closing(NamedTuple):
    """The end of a prediction's wait."""

    prediction: Prediction
    watched: bool | None
    """What is learned; None for nothing."""
    watch_ratio: float | None
    """The label's, if one came in time."""
    label_timestamp: int | None
    """Its time."""
    sequence: int
    """The outcome's."""


@dataclass
class Plan:
    """What messages, and the time that has passed, come to before the model was asked."""

    predictions: list[Prediction] = field(default_factory=list)
    """To be judged."""
    closings: list[Closing] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    """Steps: i judges prediction i, ~i learns from closing i."""
    dead_letters: list[DeadLetter] = field(default_factory=list)
    steps: int = 0
    """Messages processed, and predictions and early labels whose time ran out."""

    def predict(self, prediction: Prediction) -> None:
        """Judge this next."""
        self.order.append(len(self.predictions))
        self.predictions.append(prediction)

    def close(self, closing: Closing) -> None:
        """Learn from this next."""
        if closing.watched is not None:
            self.order.append(~len(self.closings))
        self.closings.append(closing)


@dataclass
class Batch:
    """What came of the messages merged, and of the time that has passed, since the last batch."""

    predictions: list[Prediction] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    steps: int = 0
    """Messages processed, and predictions and early labels whose time ran out."""

    @property
    def empty(self) -> bool:
        """Whether nothing happened."""
        return not self.steps


def settle(plan: Plan, model: Model) -> Batch:
    """Have everything judged and learned, in the order planned."""
    if plan.predictions or plan.closings:
        _walk(plan, model)
    return Batch(plan.predictions, _outcomes(plan.closings, model), plan.dead_letters, plan.steps)


def _walk(plan: Plan, model: Model) -> None:
    """Complete the predictions, and teach the model.

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
    judged = model.walk(order, plays, len(predictions), labels, ratios)
    model.folded += len(closings)
    columns = zip(predictions, judged.features, judged.scores, judged.probabilities, strict=True)
    for prediction, features, score, probability in columns:
        prediction.features = features
        prediction.score = score
        prediction.probability = probability
        prediction.predicted = score > 0.0


def _outcomes(closings: list[Closing], model: Model) -> list[Outcome]:
    """Predictions joined with their labels, and the losses of those that were learned."""
    if not closings:
        return []
    scores = np.array([closing.prediction.score for closing in closings])
    labels = np.array([bool(closing.watched) for closing in closings])
    ratios = np.array([closing.watch_ratio or 0.0 for closing in closings])
    losses = model.losses(scores, labels, ratios)
    return list(map(_outcome, closings, losses))


def _outcome(closing: Closing, loss: float) -> Outcome:
    prediction, watched, watch_ratio, label_timestamp, sequence = closing
    return Outcome(
        prediction.event_id,
        prediction.user_id,
        prediction.video_id,
        prediction.timestamp,
        prediction.score,
        prediction.probability,
        prediction.predicted,
        prediction.features,
        prediction.model_version,
        prediction_sequence=prediction.sequence,
        watch_ratio=watch_ratio,
        label=watched,
        label_timestamp=label_timestamp,
        correct=None if watched is None else watched == prediction.predicted,
        loss=None if watched is None else loss,
        status="expired" if label_timestamp is None else "labelled",
        sequence=sequence,
    )
