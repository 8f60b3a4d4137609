"""Columns of messages of one input: where their ids are in a text, and their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from pipeline.records.fields import Id
from pipeline.records.inputs import Carried, Interaction, Label, Slate, id_columns
from pipeline.records.texts import Integers, Texts, decode_ids

Floats: TypeAlias = NDArray[np.float64]


def _no_counts() -> Integers:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class InputColumns:
    """Messages that can be used, column by column. Of a slate, each item is a row.

    Attributes
    ----------
    texts
        The JSON of the ids: the event's, then those of the entities; shape (1 + entities, n).
    numbers
        The other fields by name, each of shape (n,); empty where there are records instead.
    records
        The records, where not all fields are numbers.
    item_counts
        The number of rows of each message, where messages are slates; else empty.

    Examples
    --------
    >>> from pipeline.records.kuairec import WatchLabel
    >>> label = WatchLabel("e", 7, "v", 5, play_duration=1.0, watch_ratio=0.5)
    >>> columns = InputColumns.of([label])
    >>> columns.ids(0), columns.ids(2), columns.field("watch_ratio")
    (['e'], ['v'], [0.5])
    """

    texts: Texts
    numbers: Mapping[str, Floats]
    records: Sequence[Interaction | Label] = ()
    item_counts: Integers = field(default_factory=_no_counts)

    def __len__(self) -> int:
        return len(self.texts)

    @classmethod
    def of(cls, records: Sequence[Interaction | Label]) -> Self:
        """Return the columns of records."""
        counts = _no_counts()
        if records and isinstance(records[0], Slate):
            items = [slate.items for slate in cast(Sequence[Slate], records)]
            counts = np.array([*map(len, items)], dtype=np.int64)
            records = [item for each in items for item in each]
        texts = Texts.of_ids([each.event_id for each in records], id_columns(records, 0))
        return cls(texts, {}, records, counts)

    @property
    def first_rows(self) -> Integers:
        """The first row of each message, and behind them the number of rows; shape (messages + 1,)."""
        if not len(self.item_counts):
            return np.arange(len(self) + 1)
        return np.concatenate([[0], np.cumsum(self.item_counts)])

    def rows(self, begin: int, end: int) -> InputColumns:
        """Return some of the rows, in the same text."""
        return InputColumns(
            self.texts.rows(begin, end),
            {name: column[begin:end] for name, column in self.numbers.items()},
            self.records[begin:end],
        )

    def select(self, rows: Integers) -> InputColumns:
        """Return those of some rows, in the same text."""
        return InputColumns(
            self.texts.select(rows),
            {name: column[rows] for name, column in self.numbers.items()},
            [self.records[row] for row in rows.tolist()] if self.records else (),
        )

    @classmethod
    def concat(cls, pieces: Sequence[InputColumns]) -> InputColumns:
        """Join pieces of one input, at least one."""
        pieces = [piece for piece in pieces if len(piece)] or pieces[:1]
        if len(pieces) == 1:
            return pieces[0]
        names = {name for piece in pieces for name in piece.numbers}
        return cls(
            Texts.concat([piece.texts for piece in pieces]),
            {name: np.concatenate([piece.array(name) for piece in pieces]) for name in names},
            () if names else [record for piece in pieces for record in piece.records],
            np.concatenate([piece.item_counts for piece in pieces]),
        )

    def ids(self, column: int, rows: Integers | None = None) -> list[Id]:
        """Return the ids of a column: 0 has the events, the others the entities in their order."""
        texts = self.texts.column(column)
        return (texts if rows is None else texts.select(rows)).decode(decode_ids)

    @property
    def carried(self) -> list[Carried]:
        """The numbers that each prediction carries; empty where the stream has none."""
        records = cast(Sequence[Interaction], self.records)
        return [each.carried for each in records] if records and records[0].carried else []

    def field(self, name: str) -> list[Any]:
        """Return a field of all messages."""
        if name in self.numbers:
            values: list[Any] = self.numbers[name].tolist()
            return values
        return [*map(attrgetter(name), self.records)]

    def array(self, name: str) -> Floats:
        """Return a field of all messages that is a number, shape (n,)."""
        return self.numbers[name] if name in self.numbers else np.array(self.field(name), dtype=np.float64)
