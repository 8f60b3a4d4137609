"""Columns of a batch: what became of its messages, one list per field, before anything is encoded."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.records.fields import Id, Status
from pipeline.records.inputs import Carried
from pipeline.records.outputs import Share
from pipeline.records.slates import item_number

Value = TypeVar("Value")
Integers: TypeAlias = NDArray[np.int64]
Challengers = Sequence[dict[str, float] | None]
"""Scores of the challengers by name, for each prediction; None where there are no challengers."""


def _no_features() -> NDArray[np.float64]:
    return np.empty((0, 0))


def _no_positions() -> Integers:
    return np.empty(0, dtype=np.int64)


def _no_means() -> NDArray[np.float64]:
    return np.empty((0, 2))


@dataclass(frozen=True, slots=True, eq=False)
class PredictionColumns:
    """Predictions of consecutive sequences, column by column. Of a slate, each item is a row."""

    first: int = 0
    """Sequence of the first prediction."""
    event_ids: list[Id] = field(default_factory=list)
    ids: tuple[list[Id], ...] = ()
    """The ids, one column for each entity."""
    keys: Sequence[Id] = ()
    """The ids of which the records' keys are made."""
    timestamps: list[int] = field(default_factory=list)
    """Event times, in milliseconds."""
    scores: list[float] = field(default_factory=list)
    probabilities: Sequence[float | None] = ()
    predicted: Sequence[bool | float] = ()
    """What the scores predict."""
    features: NDArray[np.float64] = field(default_factory=_no_features)
    """Features, shape (n, features)."""
    versions: list[int] = field(default_factory=list)
    """Outcomes folded into the model when it predicted."""
    challengers: Challengers = ()
    asked: list[bool] | None = None
    """Whether each label is asked for; None where all labels are learned as they come."""
    tables: list[dict[str, int]] = field(default_factory=list)
    """The offset up to which each live table was applied; empty without tables."""
    carried: list[Carried] = field(default_factory=list)
    """The numbers that each carries as its interaction has them; empty where the stream has none."""
    positions: Integers = field(default_factory=_no_positions)
    """Positions in slates, from 0; empty where predictions are of single items."""

    def __len__(self) -> int:
        return len(self.event_ids)

    @property
    def slates(self) -> list[slice]:
        """The rows of each slate."""
        begins = np.flatnonzero(self.positions == 0).tolist()
        return [slice(*rows) for rows in pairwise([*begins, len(self.positions)])]

    @property
    def records(self) -> int:
        """Number of records: of predictions, or of slates."""
        return int(np.count_nonzero(self.positions == 0)) if len(self.positions) else len(self)

    @property
    def numbers(self) -> Integers:
        """The number of each row, shape (n,), ascending: see `pipeline.records.outputs.Prediction.number`."""
        if not len(self.positions):
            return np.arange(self.first, self.first + len(self))
        return numbers_of(self.sequences, self.positions)

    @property
    def sequences(self) -> Integers:
        """The sequence of the slate of each row, shape (n,)."""
        return self.first - 1 + np.cumsum(self.positions == 0)

    @classmethod
    def concat(cls, pieces: Sequence[PredictionColumns]) -> PredictionColumns:
        """Join pieces that follow one another, at least one."""
        if len(pieces) == 1:
            return pieces[0]
        asked = [piece.asked or [] for piece in pieces]
        return cls(
            pieces[0].first,
            _joined(piece.event_ids for piece in pieces),
            tuple(_joined(columns) for columns in zip(*(piece.ids for piece in pieces), strict=True)),
            _joined(piece.keys for piece in pieces),
            _joined(piece.timestamps for piece in pieces),
            _joined(piece.scores for piece in pieces),
            _joined(piece.probabilities for piece in pieces),
            _joined(piece.predicted for piece in pieces),
            np.concatenate([piece.features for piece in pieces]),
            _joined(piece.versions for piece in pieces),
            _joined(piece.challengers for piece in pieces),
            None if pieces[0].asked is None else _joined(asked),
            _joined(piece.tables for piece in pieces),
            _joined(piece.carried for piece in pieces),
            np.concatenate([piece.positions for piece in pieces]),
        )


class CorrectedOutcome(NamedTuple):
    """What an outcome adds that corrects another."""

    outcome: int
    """The sequence of the other one."""
    former: float | None
    """The value that was learned before; None if nothing was."""
    former_weight: float
    """The weight of that label."""
    status: Status


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeColumns:
    """Outcomes of consecutive sequences, column by column."""

    first: int = 0
    """Sequence of the first outcome."""
    prediction_sequences: array[int] = field(default_factory=lambda: array("q"))
    keys: list[Id] = field(default_factory=list)
    """The ids of which the records' keys are made."""
    timestamps: list[int] = field(default_factory=list)
    """Event times of the predictions, in milliseconds."""
    scores: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    """Scores of the predictions, shape (n,)."""
    watch_ratios: list[float | None] = field(default_factory=list)
    """None where no label came in time."""
    labels: list[bool | float | None] = field(default_factory=list)
    """What is learned; None where nothing is."""
    label_timestamps: list[int | None] = field(default_factory=list)
    """In milliseconds; None where the prediction expired."""
    correct: list[bool | None] = field(default_factory=list)
    losses: list[float | None] = field(default_factory=list)
    shared: dict[int, list[Share]] = field(default_factory=dict)
    """By row, the shares of other partitions that are learned right before the outcome."""
    corrected: dict[int, CorrectedOutcome] = field(default_factory=dict)
    """By row, the outcomes that are corrected."""
    challengers: Challengers = ()
    """Those of the predictions."""
    asked: Sequence[bool | None] = ()
    """That of the predictions."""
    weights: Sequence[float] = ()
    """Weights of the labels; empty where the stream's labels have none."""
    means: NDArray[np.float64] = field(default_factory=_no_means)
    """The features of the predictions that are running means of the first two entities, shape (n, 0 to 2).
    They are in no record: monitoring compares the model with them."""
    positions: Integers = field(default_factory=_no_positions)
    """Positions in slates, from 0; empty where predictions are of single items."""

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def prediction_numbers(self) -> Integers:
        """The number of each prediction, shape (n,): see `pipeline.records.outputs.Prediction.number`."""
        return numbers_of(np.frombuffer(self.prediction_sequences, dtype=np.int64), self.positions)

    @classmethod
    def concat(cls, pieces: Sequence[OutcomeColumns]) -> OutcomeColumns:
        """Join pieces that follow one another, at least one."""
        if len(pieces) == 1:
            return pieces[0]
        first = pieces[0].first
        return cls(
            first,
            array("q", b"".join(piece.prediction_sequences.tobytes() for piece in pieces)),
            _joined(piece.keys for piece in pieces),
            _joined(piece.timestamps for piece in pieces),
            np.concatenate([piece.scores for piece in pieces]),
            _joined(piece.watch_ratios for piece in pieces),
            _joined(piece.labels for piece in pieces),
            _joined(piece.label_timestamps for piece in pieces),
            _joined(piece.correct for piece in pieces),
            _joined(piece.losses for piece in pieces),
            {piece.first - first + row: shares for piece in pieces for row, shares in piece.shared.items()},
            {piece.first - first + row: each for piece in pieces for row, each in piece.corrected.items()},
            _joined(piece.challengers for piece in pieces),
            _joined(piece.asked for piece in pieces),
            _joined(piece.weights for piece in pieces),
            np.concatenate([piece.means for piece in pieces if len(piece)] or [pieces[0].means]),
            np.concatenate([piece.positions for piece in pieces]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class LabelRequestColumns:
    """Label requests of consecutive sequences: predictions of the same batch whose label is asked for."""

    first: int = 0
    """Sequence of the first request."""
    rows: list[int] = field(default_factory=list)
    """Rows of the predictions."""


def numbers_of(sequences: Integers, positions: Integers) -> Integers:
    """Return the numbers of predictions, whose positions are empty where they are of single items.

    Examples
    --------
    >>> sequences = np.array([7, 7])
    >>> numbers_of(sequences, np.array([0, 1])).tolist(), numbers_of(sequences, np.empty(0)).tolist()
    ([7168, 7169], [7, 7])
    """
    return item_number(sequences, positions) if len(positions) else sequences


def _joined(lists: Iterable[Iterable[Value]]) -> list[Value]:
    return list(chain.from_iterable(lists))
