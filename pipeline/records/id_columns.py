"""Columns of ids, as parts of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.jit import njit, read_only
from pipeline.records.fields import Id

Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]

_COMMA, _LINE_FEED = b",\n"
_encode_lines = msgspec.json.Encoder().encode_lines


class IdColumns(NamedTuple):
    """Where the JSON of the ids of events is in a text."""

    text: Bytes
    begins: Integers
    """The event's, then those of the entities; shape (1 + entities, n)."""
    ends: Integers

    @classmethod
    def of(cls, event_ids: Sequence[Id], ids: Sequence[Sequence[Id]]) -> Self:
        """Return the texts of ids, one column for each entity."""
        columns = [event_ids, *ids]
        text = np.frombuffer(b"".join(map(_encode_lines, columns)), dtype=np.uint8)
        ends = np.flatnonzero(text == _LINE_FEED).reshape(len(columns), -1)
        begins = np.concatenate([[0], ends.ravel() + 1])[:-1].reshape(ends.shape)
        return cls(text, begins, ends)

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[Id, ...]]) -> Self:
        """Return the texts of the ids of events: the event's and those of its entities, of at least one."""
        event_ids, *ids = zip(*rows, strict=True)
        return cls.of(event_ids, ids)

    def select(self, rows: Integers) -> IdColumns:
        """Return those of some rows, in the same text."""
        return IdColumns(
            self.text,
            np.ascontiguousarray(self.begins[:, rows]),
            np.ascontiguousarray(self.ends[:, rows]),
        )

    def begin_records(self, rows: Integers, names: RecordNames, text: Bytes, begins: Integers) -> Flags:
        """Return of each record whether it begins with the ids of the row beside it, shape (n,).

        Parameters
        ----------
        rows
            Shape (n,).
        names
            What stands before each id in a record.
        text
            The records, with a line feed behind each.
        begins
            Where they begin, shape (n,).
        """
        own, records, out = read_only(self.text), read_only(text), np.zeros(len(rows), dtype=np.bool_)
        _begin_records(own, self.begins, self.ends, rows, names.lengths, records, begins, out)
        return out


class RecordNames:
    """The JSON that stands before each id at the beginning of the records of a type.

    Parameters
    ----------
    record
        The type. Its first fields are the event's id and those of the entities.
    entities
        The number of entities.

    Examples
    --------
    >>> from pipeline.records.outputs import Prediction
    >>> RecordNames(Prediction, 2).lengths.tolist()  # those of {"event_id": and ,"user_id": and ,"video_id":
    [12, 11, 12]
    """

    def __init__(self, record: type[msgspec.Struct], entities: int) -> None:
        fields = msgspec.structs.fields(record)[: 1 + entities]
        self.lengths = np.array([len(f',"{field.encode_name}":'.encode()) for field in fields])
        """Their lengths, shape (1 + entities,)."""


@njit(cache=True, nogil=True)
def _begin_records(  # noqa: PLR0917 - compiled code is called by position
    text: Bytes,
    begins: Integers,
    ends: Integers,
    rows: Integers,
    name_lengths: Integers,
    records: Bytes,
    record_begins: Integers,
    out: Flags,
) -> None:
    """Write which records begin with the ids of the rows beside them."""
    # No id holds a line feed, so a comparison ends with the record at the latest.
    for number in range(len(rows)):
        at, same = record_begins[number], True
        for column in range(begins.shape[0]):
            at += name_lengths[column]
            for place in range(begins[column, rows[number]], ends[column, rows[number]]):
                if records[at] != text[place]:
                    same = False
                    break
                at += 1
            if not same or records[at] != _COMMA:
                same = False
                break
        out[number] = same
