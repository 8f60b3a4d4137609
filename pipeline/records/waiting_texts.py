"""The texts of predictions that wait for their label, in one buffer."""

from __future__ import annotations

from array import array
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit
from pipeline.records.narrow_integers import NarrowIntegers
from pipeline.records.texts import Bytes, Offsets, Texts

Integers: TypeAlias = NDArray[np.int64]

COMPACT_AFTER: Final = 4_096
"""Texts that are no longer needed, at least, before their room is freed."""
COMPACT_RATIO: Final = 3
"""At most one of so many texts, beyond `COMPACT_AFTER`, is no longer needed."""
_TWICE: Final = "a prediction has two outcomes"


class WaitingTexts:
    """Keeps texts by the number of their prediction. Each takes some ten bytes more than its JSON.

    Examples
    --------
    >>> waiting = WaitingTexts()
    >>> waiting.add(np.array([3, 5]), Texts.of([b'{"sequence":3}', b'{"sequence":5}'], [1, 1]))
    >>> [*waiting.read(np.array([5])).values()], [*waiting.take(np.array([5])).values()], len(waiting)
    ([b'{"sequence":5}'], [b'{"sequence":5}'], 1)
    """

    def __init__(self) -> None:
        # Unlike arrays of NumPy, these grow in place, without being held twice meanwhile; unlike an array,
        # a bytearray takes an eighth more than it holds.
        self._buffer = array("B")
        self._numbers = NarrowIntegers()
        """They ascend, so that they can be searched: a dictionary would take more room."""
        self._offsets = NarrowIntegers(0)
        self._offsets.append(np.zeros(1, dtype=np.int64))
        """Where each text begins, and where the last one ends."""
        self._behind = NarrowIntegers(0)
        """Bytes of each text behind the prefix of its outcome; 0 once it is taken."""
        self._taken = 0

    def __len__(self) -> int:
        return len(self._numbers) - self._taken

    def add(self, numbers: Integers, texts: Texts) -> None:
        """Add texts of later predictions, whose numbers ascend, shape (n,)."""
        if self._taken >= COMPACT_AFTER and COMPACT_RATIO * self._taken >= len(self._numbers):
            self.compact()
        added = texts.copy()
        self._numbers.append(numbers)
        self._offsets.append(added.ends.astype(np.int64) + len(self._buffer))
        self._behind.append((added.ends - added.prefix_ends).astype(np.int64))
        self._buffer.frombytes(added.buffer.data)

    def begins(self, numbers: Integers) -> tuple[Bytes, Integers]:
        """Return the text of all, and where those of these numbers begin, shape (n,).

        Nothing can be added as long as anything refers to the text.
        """
        return self._bytes(), self._offsets[self._rows(numbers)]

    def read(self, numbers: Integers) -> Texts:
        """Return texts in the order of these numbers, shape (n,)."""
        return self._texts(self._rows(numbers))

    def take(self, numbers: Integers) -> Texts:
        """Return texts in the order of these numbers, shape (n,). They are kept no longer."""
        rows = self._rows(numbers)
        assert len(np.unique(rows)) == len(rows), _TWICE
        texts = self._texts(rows)
        self._behind.set(rows, 0)
        self._taken += len(rows)
        return texts

    def _rows(self, numbers: Integers) -> Integers:
        """Return the rows of texts that are kept."""
        rows: Integers = self._numbers.search(numbers)
        assert (rows < len(self._numbers)).all(), _TWICE
        assert (self._numbers[rows] == numbers).all(), _TWICE
        assert self._behind[rows].all(), _TWICE
        return rows

    def _texts(self, rows: Integers) -> Texts:
        begins, ends = (self._offsets[each].astype(np.uint64) for each in (rows, rows + 1))
        prefix_ends = ends - self._behind[rows].astype(np.uint64)
        # A copy, because a buffer to which something refers cannot grow.
        return Texts(self._bytes(), begins, prefix_ends, ends).copy()

    def _bytes(self) -> Bytes:
        return np.frombuffer(self._buffer, dtype=np.uint8)

    def compact(self) -> None:
        """Free the room of texts that were taken. `add` does so when there are many."""
        rows = np.flatnonzero(self._behind[:])
        begins, ends = (self._offsets[each].astype(np.uint64) for each in (rows, rows + 1))
        _move(self._bytes(), begins, ends)
        moved = np.append(0, np.cumsum(ends - begins, dtype=np.int64))
        del self._buffer[int(moved[-1]) :]
        self._offsets.replace(moved)
        self._numbers.keep(rows)
        self._behind.keep(rows)
        self._taken = 0


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    waiting, numbers = WaitingTexts(), np.zeros(1, dtype=np.int64)
    waiting.add(numbers, Texts.of([b"{}"], [1]))
    waiting.take(numbers)
    waiting.compact()


@njit(cache=True, nogil=True)
def _move(buffer: Bytes, begins: Offsets, ends: Offsets) -> None:
    """Move texts to the front of their buffer, byte by byte from the first on, because they may overlap."""
    at = np.uint64(0)
    for i in range(begins.shape[0]):
        begin, length = begins[i], ends[i] - begins[i]
        for k in range(length):
            buffer[at + k] = buffer[begin + k]
        at += length
