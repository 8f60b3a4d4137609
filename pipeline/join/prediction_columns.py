"""Columns of predictions: planned, made, or waiting for their label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.join.records import ChallengerScores, Pending
from pipeline.records.fields import Id
from pipeline.records.inputs import Carried
from pipeline.records.outputs import Prediction
from pipeline.records.places import flagged
from pipeline.records.slates import STRIDE
from pipeline.records.texts import NO_TEXTS, Texts, decode_ids

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

UNDECIDED: Final = -1
"""In the column that says whether a label was asked for: all labels are learned as they come."""


@dataclass(slots=True, eq=False)
class PredictionColumns:
    """Predictions, column by column. Of a slate, each item is a row.

    The features that messages and tables have by themselves, and what records hold beside, are of own
    predictions of a batch. Those of earlier batches, which get their outcomes in it, have none.

    Examples
    --------
    >>> waiting = Pending("e", (7, 3), 5, 0, 9, np.array([0.5, 0.25]).tobytes())
    >>> columns = PredictionColumns.of([waiting])
    >>> columns.numbers.tolist(), columns.scores.tolist(), columns.ids_of(2)
    ([9], [0.5], [3])
    """

    numbers: Integers
    """Their numbers, shape (n,): see `pipeline.records.outputs.Prediction.number`."""
    ids: Texts
    """The JSON of their ids: those of events, then those of each entity; shape (1 + entities, n)."""
    timestamps: Integers
    """Event times, in milliseconds, shape (n,)."""
    versions: Integers
    """How many outcomes there were before each, shape (n,)."""
    scores: Floats
    """Shape (n,)."""
    features: Floats
    """Shape (n, features)."""
    asked: NDArray[np.int8]
    """Whether the label is asked for, or `UNDECIDED`, shape (n,)."""
    challengers: Sequence[ChallengerScores | None] = ()
    """The scores of challengers; empty where there are none."""
    spilled: Sequence[Prediction] = ()
    """The records of those that were spilled, in their order."""
    values: Floats = field(default_factory=lambda: np.empty((0, 0)))
    """The features of messages and of live tables, shape (n, features)."""
    tables: list[dict[str, int]] = field(default_factory=list)
    """The offset up to which each live table was applied; empty without tables."""
    carried: list[Carried] = field(default_factory=list)
    """The numbers that each carries as its interaction has them; empty where the stream has none."""
    probabilities: Sequence[float | None] = ()
    predicted: Sequence[bool | float] = ()
    """What the scores predict."""
    of_slates: bool = False
    """Whether they are items of slates."""

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def of(cls, predictions: Sequence[Pending]) -> Self:
        """Return the columns of predictions, at least one."""
        scored = np.frombuffer(b"".join([each.scored for each in predictions])).reshape(len(predictions), -1)
        challengers = [each.challengers for each in predictions]
        return cls(
            np.array([each.sequence for each in predictions], dtype=np.int64),
            Texts.of_id_rows([(each.event_id, *each.ids) for each in predictions]),
            np.array([each.timestamp for each in predictions], dtype=np.int64),
            np.array([each.model_version for each in predictions], dtype=np.int64),
            scored[:, 0].copy() if scored.size else np.empty(len(predictions)),
            scored[:, 1:].copy(),
            np.array([UNDECIDED if each.asked is None else each.asked for each in predictions], np.int8),
            challengers if any(challengers) else (),
            [each.record for each in predictions if each.record is not None],
        )

    @classmethod
    def concat(cls, pieces: Sequence[PredictionColumns]) -> PredictionColumns:
        """Join pieces, at least one."""
        pieces = [piece for piece in pieces if len(piece)] or pieces[:1]
        if len(pieces) == 1:
            return pieces[0]
        challengers: list[ChallengerScores | None] = []
        if any(piece.challengers for piece in pieces):
            challengers = [*chain.from_iterable(piece.challengers or [None] * len(piece) for piece in pieces)]
        values = [piece.values for piece in pieces if piece.values.size]
        return cls(
            np.concatenate([piece.numbers for piece in pieces]),
            Texts.concat([piece.ids for piece in pieces]),
            np.concatenate([piece.timestamps for piece in pieces]),
            np.concatenate([piece.versions for piece in pieces]),
            np.concatenate([piece.scores for piece in pieces]),
            np.concatenate([piece.features for piece in pieces]),
            np.concatenate([piece.asked for piece in pieces]),
            challengers,
            [*chain.from_iterable(piece.spilled for piece in pieces)],
            np.concatenate(values) if values else pieces[0].values,
            [*chain.from_iterable(piece.tables for piece in pieces)],
            [*chain.from_iterable(piece.carried for piece in pieces)],
            of_slates=pieces[0].of_slates,
        )

    def select(self, rows: Integers) -> PredictionColumns:
        """Return some rows, as predictions of earlier batches."""
        return PredictionColumns(
            self.numbers[rows],
            self.ids.select(rows),
            self.timestamps[rows],
            self.versions[rows],
            self.scores[rows],
            self.features[rows],
            self.asked[rows],
            [self.challengers[row] for row in rows.tolist()] if self.challengers else (),
            self.spilled,
            of_slates=self.of_slates,
        )

    def own(self, begin: int) -> PredictionColumns:
        """Return the rows from one on, which are own ones; all that only own ones have is theirs alone."""
        if not begin:
            return self
        rows = slice(begin, None)
        return PredictionColumns(
            self.numbers[rows],
            self.ids.rows(begin, len(self)),
            self.timestamps[rows],
            self.versions[rows],
            self.scores[rows],
            self.features[rows],
            self.asked[rows],
            self.challengers[rows],
            (),
            self.values,
            self.tables,
            self.carried,
            of_slates=self.of_slates,
        )

    def ids_of(self, column: int) -> list[Id]:
        """Return the ids of a column: 0 has the events, the others the entities in their order."""
        return self.ids.column(column).decode(decode_ids)

    @property
    def entities(self) -> tuple[list[Id], ...]:
        """The ids of each entity."""
        n, count = len(self), len(self.ids.begins) - 1
        if not n * count:
            return tuple([] for _ in range(count))
        found = Texts(self.ids.text, self.ids.begins[1:], self.ids.ends[1:]).decode(decode_ids)
        return tuple(found[begin : begin + n] for begin in range(0, len(found), n))

    @property
    def slates(self) -> list[slice]:
        """The rows of each slate."""
        begins = flagged(self.positions == 0).tolist()
        return [slice(*rows) for rows in pairwise([*begins, len(self)])]

    @property
    def positions(self) -> Integers:
        """The place of each item in its slate, shape (n,)."""
        return self.numbers % STRIDE

    @property
    def first(self) -> int:
        """Sequence of the first record; 0 without one."""
        return int(self.sequences[0]) if len(self) else 0

    @property
    def sequences(self) -> Integers:
        """The sequence of each row's record, shape (n,)."""
        return self.numbers // STRIDE if self.of_slates else self.numbers

    @property
    def records(self) -> int:
        """The number of records: of predictions, or of slates."""
        return int(self.sequences[-1]) + 1 - self.first if len(self) else 0


def no_predictions() -> PredictionColumns:
    """Return the columns of no predictions."""
    integers, floats = np.empty(0, dtype=np.int64), np.empty(0)
    return PredictionColumns(
        integers, NO_TEXTS, integers, integers, floats, np.empty((0, 0)), integers.astype(np.int8)
    )
