"""The ids of predictions that wait for their label, as JSON text in one buffer.

As objects, the ids of an event take some 150 bytes; as text they take about 30.

Numba's cache on disk knows a function by its own file only: nothing compiled here depends on another one.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple, Self, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.jit import njit
from pipeline.records.fields import Id

Bytes: TypeAlias = NDArray[np.uint8]
Integers: TypeAlias = NDArray[np.int64]

LARGEST_OFFSET: Final = 2**32 - 1
"""Where a text may end, at most, as long as offsets have four bytes."""
_COMMA, _LINE_FEED = b",\n"
_encode_lines = msgspec.json.Encoder().encode_lines
_decode_ids = msgspec.json.Decoder(list[int | str]).decode


class IdColumns(NamedTuple):
    """Where the ids of events are in a text, as in `pipeline.vectorized.input_columns.InputColumns`."""

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
        return bool(
            _equal(self.text, self.begins, self.ends, rows, other.text, other.begins, other.ends, other_rows)
        )


class IdTexts:
    """Ids by row: those of an event, then those of its entities, with a comma behind each.

    Examples
    --------
    >>> texts = IdTexts()
    >>> texts.append(IdColumns.of(["e", 5], [[7, "u"]]))
    >>> texts.columns(np.array([1, 0]))
    [[5, 'e'], ['u', 7]]
    >>> texts.keep(np.array([1]))
    >>> texts.columns(np.array([0]))
    [[5], ['u']]
    """

    def __init__(self) -> None:
        # Unlike arrays of NumPy, these grow in place, without being held twice meanwhile.
        self._text = bytearray()
        self._ends = array("I", [0])
        """Where the text of each row ends, behind a 0."""
        self._width = 1

    def append(self, ids: IdColumns) -> None:
        """Add the ids of the next rows."""
        self._width, count = len(ids.begins), ids.begins.shape[1]
        out = np.empty(int((ids.ends - ids.begins).sum()) + ids.begins.size, dtype=np.uint8)
        ends = np.empty(count, dtype=np.int64)
        _join(ids.text, ids.begins, ids.ends, out, ends)
        if self._ends.typecode == "I" and len(self._text) + len(out) > LARGEST_OFFSET:
            self._ends = array("Q", self._ends)
        ends += len(self._text)
        self._ends.frombytes(ends.astype(self._ends.typecode).tobytes())
        self._text += out.data

    def columns(self, rows: Integers) -> list[list[Id]]:
        """Return the ids of rows: of the events, then of each entity."""
        text, ends = self._arrays()
        out = np.empty(int((ends[rows + 1].astype(np.int64) - ends[rows].astype(np.int64)).sum()), np.uint8)
        _gather(text, ends, rows, out)
        ids: list[Id] = _decode_ids(b"[" + out[:-1].tobytes() + b"]")
        return [ids[column :: self._width] for column in range(self._width)]

    def equal(self, rows: Integers, other: IdColumns, other_rows: Integers) -> bool:
        """Whether the ids of rows are those of other rows, one by one."""
        text, ends = self._arrays()
        return bool(_equal_rows(text, ends, rows, other.text, other.begins, other.ends, other_rows))

    def keep(self, rows: Integers) -> None:
        """Drop all rows but these, which ascend and are counted anew."""
        text, ends = self._arrays()
        kept = np.empty(len(rows) + 1, dtype=ends.dtype)
        size = int(_move(text, ends, rows, kept))
        typecode = self._ends.typecode
        del text, ends  # a buffer to which something refers cannot shrink
        del self._text[size:]
        self._ends = array(typecode, kept.tobytes())

    def _arrays(self) -> tuple[Bytes, NDArray[np.uint32]]:
        return np.frombuffer(self._text, np.uint8), np.frombuffer(self._ends, self._ends.typecode)


@njit(cache=True, nogil=True)
def _join(text: Bytes, begins: Integers, ends: Integers, out: Bytes, out_ends: Integers) -> None:
    """Write the ids of each row, with a comma behind each, and where each row ends."""
    at = 0
    for row in range(begins.shape[1]):
        for column in range(begins.shape[0]):
            for place in range(begins[column, row], ends[column, row]):
                out[at] = text[place]
                at += 1
            out[at] = _COMMA
            at += 1
        out_ends[row] = at


@njit(cache=True, nogil=True)
def _gather(text: Bytes, ends: NDArray[np.uint32], rows: Integers, out: Bytes) -> None:
    """Write the texts of rows one behind the other."""
    at = 0
    for row in rows:
        for place in range(ends[row], ends[row + 1]):
            out[at] = text[place]
            at += 1


@njit(cache=True, nogil=True)
def _move(text: Bytes, ends: NDArray[np.uint32], rows: Integers, kept: NDArray[np.uint32]) -> int:
    """Move the texts of rows to the front, and write where each ends then; return where the last one does."""
    at, kept[0] = 0, 0
    for number in range(len(rows)):
        for place in range(ends[rows[number]], ends[rows[number] + 1]):
            text[at] = text[place]
            at += 1
        kept[number + 1] = at
    return at


@njit(cache=True, nogil=True)
def _equal_rows(  # noqa: PLR0917 - compiled code is called by position
    text: Bytes,
    text_ends: NDArray[np.uint32],
    rows: Integers,
    other: Bytes,
    begins: Integers,
    ends: Integers,
    other_rows: Integers,
) -> bool:
    for number in range(len(rows)):
        at, end, row = (
            np.int64(text_ends[rows[number]]),
            np.int64(text_ends[rows[number] + 1]),
            other_rows[number],
        )
        for column in range(begins.shape[0]):
            size = ends[column, row] - begins[column, row]
            if at + size >= end or text[at + size] != _COMMA:
                return False
            for place in range(size):
                if text[at + place] != other[begins[column, row] + place]:
                    return False
            at += size + 1
        if at != end:
            return False
    return True


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
