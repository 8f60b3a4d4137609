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

    def select(self, rows: Integers) -> IdColumns:
        """Return those of some rows, in the same text."""
        return IdColumns(
            self.text,
            np.ascontiguousarray(self.begins[:, rows]),
            np.ascontiguousarray(self.ends[:, rows]),
        )

    def equal(self, rows: Integers, other: IdColumns, other_rows: Integers) -> bool:
        """Whether the entities of these rows are those of rows of another table, one by one."""
        text, others = read_only(self.text), read_only(other.text)
        return bool(_equal(text, self.begins, self.ends, rows, others, other.begins, other.ends, other_rows))

    def begin_records(self, rows: Integers, names: RecordNames, text: Bytes, begins: Integers) -> bool:
        """Whether records begin with the ids of these rows, one by one.

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
        own, records = read_only(self.text), read_only(text)
        return bool(_begin_records(own, self.begins, self.ends, rows, names.lengths, records, begins))


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
def _equal(  # noqa: PLR0917 - compiled code is called by position
    text: Bytes,
    begins: Integers,
    ends: Integers,
    rows: Integers,
    other: Bytes,
    other_begins: Integers,
    other_ends: Integers,
    other_rows: Integers,
) -> bool:
    for number in range(len(rows)):
        for column in range(1, begins.shape[0]):
            begin, other_begin = begins[column, rows[number]], other_begins[column, other_rows[number]]
            size = ends[column, rows[number]] - begin
            if other_ends[column, other_rows[number]] - other_begin != size:
                return False
            for place in range(size):
                if text[begin + place] != other[other_begin + place]:
                    return False
    return True


@njit(cache=True, nogil=True)
def _begin_records(  # noqa: PLR0917 - compiled code is called by position
    text: Bytes,
    begins: Integers,
    ends: Integers,
    rows: Integers,
    name_lengths: Integers,
    records: Bytes,
    record_begins: Integers,
) -> bool:
    # No id holds a line feed, so a comparison ends with the record at the latest.
    for number in range(len(rows)):
        at = record_begins[number]
        for column in range(begins.shape[0]):
            at += name_lengths[column]
            for place in range(begins[column, rows[number]], ends[column, rows[number]]):
                if records[at] != text[place]:
                    return False
                at += 1
            if records[at] != _COMMA:
                return False
    return True
