"""The plan of a batch: predictions and outcomes in their order, before the model runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.join.prediction_columns import PredictionColumns
from pipeline.records.inputs import RawMessage
from pipeline.records.names import Fault
from pipeline.records.outputs import Share
from pipeline.task.columns import Corrections, OutcomeColumns


class DeadLetter(NamedTuple):
    """A message that could not be used, and why."""

    source: RawMessage
    fault: Fault
    reason: str


@dataclass
class Plan:
    """Predictions and outcomes of messages and of passing time, before the model runs, in columns.

    Predictions and outcomes are each in their order. A prediction's version is the number of outcomes before
    it, which gives their common order.
    """

    first: int
    """The number of the first prediction: its sequence, or that of a slate's item (`records/slates.py`)."""
    outcomes_learned: int
    """The sequence of the first outcome."""
    stream_time: int
    """After these messages, in milliseconds."""
    predictions: list[PredictionColumns] = field(default_factory=list)
    """Those to be made."""
    prior: list[PredictionColumns] = field(default_factory=list)
    """Those of earlier batches that get an outcome, in the order of their outcomes."""
    outcomes: list[OutcomeColumns] = field(default_factory=list)
    received: dict[int, list[Share]] = field(default_factory=dict)
    """Shares of other partitions that are learned right before an outcome, by its number in the plan."""
    corrections: Corrections = field(default_factory=Corrections)
    """Which outcomes correct others, by their numbers in the plan."""
    dead_letters: list[DeadLetter] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """What is counted of the messages."""
    steps: int = 0
    """Messages processed, and predictions and early labels whose time ran out."""

    @property
    def next_outcome(self) -> int:
        """The sequence of the outcome behind these."""
        return self.outcomes_learned + sum(map(len, self.outcomes))

    def extend(self, later: Plan) -> None:
        """Append a later plan."""
        before = self.next_outcome - self.outcomes_learned
        self.received |= {before + number: shares for number, shares in later.received.items()}
        if len(later.corrections):
            self.corrections = self.corrections.followed_by(later.corrections, before)
        self.predictions += later.predictions
        self.prior += later.prior
        self.outcomes += later.outcomes
        self.dead_letters += later.dead_letters
        self.steps += later.steps
        self.stream_time = later.stream_time
