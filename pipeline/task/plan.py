"""The plan of a batch: predictions and outcomes in their order, before the model runs."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.join.event_rows import Integers
from pipeline.join.records import Pending
from pipeline.model.columns import InteractionColumns
from pipeline.model.label_policy import LabelPolicy
from pipeline.records.entities import columns_joined
from pipeline.records.fields import Id
from pipeline.records.inputs import Carried, Interaction, RawMessage, id_columns
from pipeline.records.names import Fault
from pipeline.records.outputs import Share
from pipeline.records.slates import STRIDE, item_number
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
    """A later label of a prediction that has an outcome already."""

    prediction: Pending
    former: float | None
    """The value that was learned before; None if nothing was."""
    replaces: bool
    """Whether the former label is taken back, and not kept beside the new one."""


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
    waiting: dict[int, Pending] = field(default_factory=dict)
    """Predictions that something else needs as objects, by number: the model's output is stored in them."""
    closed: array[int] = field(default_factory=lambda: array("q"))
    """Sequences of the predictions that get an outcome; the next three columns are of these outcomes."""
    labels: list[bool | float | None] = field(default_factory=list)
    """What is learned; None for nothing. A label policy may change it once the prediction is made."""
    watch_ratios: list[float | None] = field(default_factory=list)
    """Watch ratios of the labels; None where none came in time."""
    label_timestamps: list[int | None] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    """Weights of the labels, 1 where none came in time; empty where the stream's labels have none."""
    corrections: dict[int, Correction] = field(default_factory=dict)
    """Those of the outcomes that are corrections, by number in the plan."""
    prior: PriorPredictions = field(default_factory=PriorPredictions)
    """Those of the closed that were predicted before this plan, in their order."""
    late: list[Pending] = field(default_factory=list)
    """In a piece of a plan, the same as objects: some are predicted by pieces before it."""
    received: dict[int, list[Share]] = field(default_factory=dict)
    """Shares of other partitions that are learned right before an outcome, by its number in the plan."""
    dead_letters: list[DeadLetter] = field(default_factory=list)
    steps: int = 0
    """Messages processed, and predictions and early labels whose time ran out."""

    @property
    def outcomes(self) -> int:
        """Number of outcomes before the next one."""
        return self.folded + len(self.closed)

    def predict(
        self,
        interactions: Sequence[Interaction],
        values: array[float],
        tables: dict[str, int] | None = None,
        numbers: Iterable[int] = (),
    ) -> list[Pending]:
        """Append predictions of one version; return them as they wait for their labels.

        Parameters
        ----------
        interactions
            A single one, or the items of a slate.
        values
            The features of their messages and of live tables, those of one after those of another.
        tables
            The offset up to which each live table was applied; None without tables.
        numbers
            The numbers of a slate's items.
        """
        begin = len(self.event_ids)
        self.event_ids += [each.event_id for each in interactions]
        self.ids = columns_joined(self.ids, id_columns(interactions, 0))
        self.timestamps += [each.timestamp for each in interactions]
        self.values += values
        self.versions += [self.outcomes] * len(interactions)
        self.numbers.extend(numbers)
        if tables is not None:
            self.tables += [tables] * len(interactions)
        self.carried += [each.carried for each in interactions if each.carried]
        return [self.pending(row) for row in range(begin, len(self.event_ids))]

    def close(
        self,
        prediction: Pending,
        label: bool | float | None,
        watch_ratio: float | None,
        label_timestamp: int | None,
        *,
        correction: Correction | None = None,
        weight: float | None = None,
    ) -> None:
        """Append an outcome; `weight` is None where the stream's labels have none."""
        if correction is not None:
            self.corrections[len(self.closed)] = correction
        self.closed.append(prediction.sequence)
        self.labels.append(label)
        self.watch_ratios.append(watch_ratio)
        self.label_timestamps.append(label_timestamp)
        if weight is not None:
            self.weights.append(weight)
        if prediction.sequence < self.first:
            self.prior.append(prediction)

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
        self.waiting |= later.waiting
        self.closed += later.closed
        self.labels += later.labels
        self.watch_ratios += later.watch_ratios
        self.label_timestamps += later.label_timestamps
        self.weights += later.weights
        self.prior.extend(later.prior)
        self.dead_letters += later.dead_letters
        self.steps += later.steps

    def pending(self, row: int) -> Pending:
        """Return the prediction of a row as an object, in which the model's output is stored."""
        number = self._number(row)
        if number not in self.waiting:
            ids = tuple(column[row] for column in self.ids)
            self.waiting[number] = Pending(
                self.event_ids[row], ids, self.timestamps[row], self.versions[row], number
            )
        return self.waiting[number]

    def own(self, prediction: Pending) -> Pending:
        """Return the object of a prediction, which may be of this plan."""
        if prediction.sequence < self.first:
            return prediction
        [row] = self.rows_of(np.array([prediction.sequence])).tolist()
        return self.pending(row)

    def _number(self, row: int) -> int:
        """Return the number of a prediction."""
        return self.numbers[row] if self.numbers else self.first + row

    def rows_of(self, numbers: Integers) -> Integers:
        """Return the rows of predictions of this plan, given their numbers."""
        if not self.numbers:
            return numbers - self.first
        return np.searchsorted(np.frombuffer(self.numbers, dtype=np.int64), numbers)

    @property
    def after(self) -> int:
        """A number above those of all predictions: the next sequence's."""
        if not self.numbers:
            return self.first + len(self.event_ids)
        return item_number(self.numbers[-1] // STRIDE + 1, 0)

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

    def split(self, numbers: Sequence[int]) -> list[Plan]:
        """Split the plan before the outcomes of these numbers, ascending: into one piece more.

        Such an outcome is the first of its piece. Shares, corrections, dead letters and steps are in none.
        """
        if not numbers:
            return [self]
        rows_at = [0, *self._predictions_before(numbers).tolist(), len(self.event_ids)]
        width = len(self.values) // max(1, len(self.event_ids))
        pieces = [
            self._piece(slice(*rows), slice(*outcomes), width)
            for rows, outcomes in zip(
                pairwise(rows_at), pairwise([0, *numbers, len(self.closed)]), strict=True
            )
        ]
        before = {each.sequence: each for each in self.prior.objects()}
        for piece in pieces:
            needed = [number for number in piece.closed if number < piece.first]
            lacking = [number for number in needed if number not in before]
            own = dict(zip(lacking, map(self.pending, self.rows_of(_array(lacking)).tolist()), strict=True))
            piece.late = [before.get(number) or own[number] for number in needed]
        for piece in pieces:
            numbers = piece.numbers or range(piece.first, piece.first + len(piece.event_ids))
            piece.waiting = {number: self.waiting[number] for number in numbers if number in self.waiting}
        return pieces

    def _piece(self, rows: slice, outcomes: slice, width: int) -> Plan:
        return Plan(
            first=self._number(rows.start) if rows.start < len(self.event_ids) else self.after,
            folded=self.folded + outcomes.start,
            event_ids=self.event_ids[rows],
            ids=tuple(column[rows] for column in self.ids),
            timestamps=self.timestamps[rows],
            values=self.values[width * rows.start : width * rows.stop],
            versions=self.versions[rows],
            numbers=self.numbers[rows],
            tables=self.tables[rows],
            carried=self.carried[rows],
            closed=self.closed[outcomes],
            labels=self.labels[outcomes],
            watch_ratios=self.watch_ratios[outcomes],
            label_timestamps=self.label_timestamps[outcomes],
            weights=self.weights[outcomes],
        )

    def correction_split_points(self) -> set[int]:
        """Return the outcomes before which to split, so that corrections stand alone."""
        after = (number + 1 for number in self.corrections)
        return {*self.corrections, *(number for number in after if number < len(self.closed))}

    def policy_split_points(self) -> list[int]:
        """Return the outcomes before which to split: each piece then closes predictions of earlier pieces."""
        before, predicted, numbers = self._predictions_before(range(len(self.closed))).tolist(), 0, []
        for number, sequence in enumerate(self.closed):
            if sequence - self.first >= predicted:
                predicted = before[number]
                numbers.append(number)
        return numbers

    def _predictions_before(self, numbers: Sequence[int]) -> Integers:
        """Return how many predictions come before each of these outcomes."""
        return np.searchsorted(self.versions, [self.folded + number for number in numbers], side="right")

    def apply_policy(self, policy: LabelPolicy) -> None:
        """Learn nothing where the policy decides so; all predictions closed here are prior ones."""
        for number, (asked, came) in enumerate(zip(self.prior.asked, self.label_timestamps, strict=True)):
            if not policy.learns(asked, came is not None):
                self.labels[number] = None

    def count_unasked(self) -> int:
        """Count labels that were not asked for; all predictions closed here are prior ones."""
        pairs = zip(self.prior.asked, self.label_timestamps, strict=True)
        return sum(asked is False and came is not None for asked, came in pairs)


def _array(numbers: Sequence[int]) -> Integers:
    return np.array(numbers, dtype=np.int64)
