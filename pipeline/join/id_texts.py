"""The ids of predictions that wait for their label, as JSON text in one buffer.

As objects, the ids of an event take some 150 bytes; as text they take about 30.
"""

from __future__ import annotations

from array import array
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.jit import njit, read_only
from pipeline.records.fields import Id
from pipeline.records.narrow_integers import NarrowIntegers
from pipeline.records.texts import Texts

Bytes: TypeAlias = NDArray[np.uint8]
Integers: TypeAlias = NDArray[np.int64]

_COMMA = b","[0]
_decode = msgspec.json.Decoder(list[list[int | str]]).decode


class IdTexts:
    """Ids by row: those of an event, then those of its entities, with a comma behind each.

    Examples
    --------
    >>> texts = IdTexts()
    >>> texts.append(Texts.of_ids(["e", 5], [[7, "u"]]))
    >>> texts.of(np.array([1, 0])), len(texts)
    ([[5, 'u'], ['e', 7]], 2)
    >>> texts.keep(np.array([1]))
    >>> texts.of(np.array([0]))
    [[5, 'u']]
    """

    def __init__(self) -> None:
        self._text = array("B")
        self._ends = NarrowIntegers(0)
        self._ends.append(np.zeros(1, dtype=np.int64))
        """Where the text of each row ends, behind a 0."""

    def __len__(self) -> int:
        return len(self._ends) - 1

    def append(self, ids: Texts) -> None:
        """Add the ids of the next rows."""
        out = np.empty(int((ids.ends - ids.begins).sum()) + ids.begins.size, dtype=np.uint8)
        ends = np.empty(ids.begins.shape[1], dtype=np.int64)
        _join(read_only(ids.text), ids.begins, ids.ends, out, ends)
        self._ends.append(ends + len(self._text))
        self._text.frombytes(out.data)

    def of(self, rows: Integers) -> list[list[Id]]:
        """Return the ids of each row: that of the event, then that of each entity."""
        if not len(rows):
            return []
        places, text = zip(self._ends[rows].tolist(), self._ends[rows + 1].tolist(), strict=True), self._text
        found = b"],[".join([text[begin : end - 1].tobytes() for begin, end in places])
        ids: list[list[Id]] = _decode(b"[[" + found + b"]]")
        return ids

    def equal(self, rows: Integers, other: Texts, other_rows: Integers) -> NDArray[np.bool_]:
        """Return of each row whether its ids are those of the other row beside it, shape (n,)."""
        begins, ends, equal = self._ends[rows], self._ends[rows + 1], np.zeros(len(rows), dtype=np.bool_)
        others = read_only(other.text)
        _equal(self._array(), begins, ends, others, other.begins, other.ends, other_rows, equal)
        return equal

    def keep(self, rows: Integers) -> None:
        """Drop all rows but these, which ascend and are counted anew."""
        ends = np.zeros(len(rows) + 1, dtype=np.int64)
        _move(self._array(), self._ends[rows], self._ends[rows + 1], ends)
        del self._text[int(ends[-1]) :]
        self._ends.replace(ends)

    def _array(self) -> Bytes:
        return np.frombuffer(self._text, np.uint8)


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
def _move(text: Bytes, begins: Integers, ends: Integers, moved_ends: Integers) -> None:
    """Move the texts of rows to the front, and write where each ends then, behind a 0."""
    at = 0
    for number in range(len(begins)):
        for place in range(begins[number], ends[number]):
            text[at] = text[place]
            at += 1
        moved_ends[number + 1] = at


@njit(cache=True, nogil=True)
def _equal(  # noqa: PLR0917 - compiled code is called by position
    text: Bytes,
    row_begins: Integers,
    row_ends: Integers,
    other: Bytes,
    begins: Integers,
    ends: Integers,
    other_rows: Integers,
    out: NDArray[np.bool_],
) -> None:
    """Write which rows have the ids of the rows beside them."""
    for number in range(len(row_begins)):
        at, end, row = row_begins[number], row_ends[number], other_rows[number]
        equal = True
        for column in range(begins.shape[0]):
            size = ends[column, row] - begins[column, row]
            if at + size >= end or text[at + size] != _COMMA:
                equal = False
                break
            for place in range(size):
                if text[at + place] != other[begins[column, row] + place]:
                    equal = False
                    break
            at += size + 1
        out[number] = equal and at == end
