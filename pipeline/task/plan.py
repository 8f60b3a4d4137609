"""The plan of a batch: predictions and outcomes in their order, before the model runs."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.join.event_rows import Integers
from pipeline.model.columns import InteractionColumns
from pipeline.records.entities import columns_joined
from pipeline.records.fields import Id
from pipeline.records.inputs import Carried, RawMessage
from pipeline.records.names import Fault
from pipeline.records.outputs import Share
from pipeline.task.prior_predictions import PriorPredictions


class DeadLetter(NamedTuple):
    """A message that could not be used, and why."""

    source: RawMessage
    fault: Fault
    reason: str


class TrainingExamples(NamedTuple):
    """Training examples of outcomes, column by column."""

    rows: Integers
    """Row of each example's interaction: see `Plan.interactions`."""
    learned: NDArray[np.bool_]
    """Whether anything is learned from them."""
    values: NDArray[np.float64]
    """Values of the labels; 0 where none came."""
    weights: NDArray[np.float64] | None
    """Weights of the labels; None where the stream's labels have none."""


class Correction(NamedTuple):
    """What an outcome corrects, which is a later label of a prediction that has an outcome already."""

    outcome: int
    """The sequence of the outcome before."""
    former: float | None
    """The value that it taught, if it is of an earlier batch; None for nothing."""
    weight: float
    """The weight of its label."""


@dataclass
class Plan:
    """Predictions and outcomes of messages and of passing time, before the model runs, in columns.

    Predictions and outcomes are each in their order. A prediction's version is the number of outcomes before
    it, which gives their common order.
    """

    first: int
    """The number of the first prediction: its sequence, or that of a slate's item (`records/slates.py`)."""
    folded: int
    """The sequence of the first outcome."""
    event_ids: list[Id] = field(default_factory=list)
    """Of the predictions, to be made; so are the next four columns."""
    ids: tuple[list[Id], ...] = ()
    """The ids, one column for each entity; none as long as there is no prediction."""
    timestamps: list[int] = field(default_factory=list)
    values: array[float] = field(default_factory=lambda: array("d"))
    """The features of messages and of live tables, one interaction's after the other's."""
    versions: list[int] = field(default_factory=list)
    numbers: array[int] = field(default_factory=lambda: array("q"))
    """The numbers of slates' items, which ascend; empty where there are no slates."""
    tables: list[dict[str, int]] = field(default_factory=list)
    """The offset up to which each live table was applied, of each prediction; empty without tables."""
    carried: list[Carried] = field(default_factory=list)
    """The numbers that each prediction carries as they are; empty where the stream has none."""
    closed: array[int] = field(default_factory=lambda: array("q"))
    """Sequences of the predictions that get an outcome; the next three columns are of these outcomes."""
    labels: list[bool | float | None] = field(default_factory=list)
    """What is learned; None for nothing."""
    watch_ratios: list[float | None] = field(default_factory=list)
    """Watch ratios of the labels; None where none came in time."""
    label_timestamps: list[int | None] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    """Weights of the labels, 1 where none came in time; empty where the stream's labels have none."""
    corrections: dict[int, Correction] = field(default_factory=dict)
    """Those of the outcomes that are corrections, by number in the plan."""
    prior: PriorPredictions = field(default_factory=PriorPredictions)
    """Those of the closed that were predicted before this plan, in their order."""
    received: dict[int, list[Share]] = field(default_factory=dict)
    """Shares of other partitions that are learned right before an outcome, by its number in the plan."""
    dead_letters: list[DeadLetter] = field(default_factory=list)
    steps: int = 0
    """Messages processed, and predictions and early labels whose time ran out."""

    @property
    def outcomes(self) -> int:
        """Number of outcomes before the next one."""
        return self.folded + len(self.closed)

    def extend(self, later: Plan) -> None:
        """Append a later plan."""
        outcomes = len(self.closed)
        self.received |= {outcomes + number: shares for number, shares in later.received.items()}
        self.corrections |= {outcomes + number: each for number, each in later.corrections.items()}
        self.event_ids += later.event_ids
        self.ids = columns_joined(self.ids, later.ids)
        self.timestamps += later.timestamps
        self.values += later.values
        self.versions += later.versions
        self.numbers += later.numbers
        self.tables += later.tables
        self.carried += later.carried
        self.closed += later.closed
        self.labels += later.labels
        self.watch_ratios += later.watch_ratios
        self.label_timestamps += later.label_timestamps
        self.weights += later.weights
        self.prior.extend(later.prior)
        self.dead_letters += later.dead_letters
        self.steps += later.steps

    def number(self, row: int) -> int:
        """Return the number of a prediction."""
        return self.numbers[row] if self.numbers else self.first + row

    def rows_of(self, numbers: Integers) -> Integers:
        """Return the rows of predictions of this plan, given their numbers."""
        if not self.numbers:
            return numbers - self.first
        return np.searchsorted(np.frombuffer(self.numbers, dtype=np.int64), numbers)

    def interactions(self, entities: int) -> InteractionColumns:
        """Return the interactions of prior predictions, then the own ones, each with so many ids."""
        columns = columns_joined(columns_joined((), self.prior.ids), self.ids)
        return InteractionColumns(
            columns or tuple([] for _ in range(entities)), self.prior.timestamps + self.timestamps
        )

    def keys(self, entity: int | None, interactions: InteractionColumns) -> list[Id]:
        """Return what the keys of these interactions are made of: the ids of an entity, or of events."""
        return self.prior.event_ids + self.event_ids if entity is None else interactions.ids[entity]

    def training_examples(self) -> TrainingExamples:
        """Return the training examples of the outcomes."""
        sequences = np.frombuffer(self.closed, dtype=np.int64)
        rows = self.rows_of(sequences) + len(self.prior)
        rows[sequences < self.first] = np.arange(len(self.prior))
        return TrainingExamples(
            rows,
            np.array([label is not None for label in self.labels], dtype=np.bool_),
            np.array([ratio or 0.0 for ratio in self.watch_ratios]),
            np.array(self.weights) if self.weights else None,
        )

    def outcome_mask(self) -> NDArray[np.bool_]:
        """Return which steps are outcomes, the others being predictions; shape (predictions + outcomes,)."""
        outcome_mask = np.ones(len(self.event_ids) + len(self.closed), dtype=np.bool_)
        outcome_mask[
            np.arange(len(self.versions)) + np.array(self.versions, dtype=np.int64) - self.folded
        ] = False
        return outcome_mask

    def predictions_before(self, numbers: Sequence[int]) -> Integers:
        """Return how many predictions come before each of these outcomes, which ascend."""
        return np.searchsorted(self.versions, [self.folded + number for number in numbers], side="right")
