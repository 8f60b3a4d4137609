"""The texts of predictions that wait for their label, in one buffer.

Numba's cache on disk knows a function by its own file only: nothing compiled here depends on another one.
"""

from __future__ import annotations

from array import array
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit
from pipeline.vectorized.texts import Bytes, Offsets, Texts

Integers: TypeAlias = NDArray[np.int64]
Lengths: TypeAlias = NDArray[np.uint32]

COMPACT_AFTER: Final = 4_096
"""Texts that are no longer needed, at least, before their room is freed."""
COMPACT_RATIO: Final = 3
"""At most one of so many texts, beyond `COMPACT_AFTER`, is no longer needed."""


class WaitingTexts:
    """Keeps texts by the number of their prediction. Each takes 21 bytes more than its JSON.

    Examples
    --------
    >>> waiting = WaitingTexts()
    >>> waiting.add(np.array([3, 5]), Texts.of([b'{"sequence":3}', b'{"sequence":5}'], [1, 1]))
    >>> [*waiting.take(np.array([5])).values()], len(waiting)
    ([b'{"sequence":5}'], 1)
    """

    def __init__(self) -> None:
        # Unlike arrays of NumPy, these grow in place, without being held twice meanwhile.
        self._buffer = bytearray()
        self._numbers = array("q")
        """They ascend, so that they can be searched: a dictionary would take more room."""
        self._offsets = array("Q", [0])
        """Where each text begins, and where the last one ends."""
        self._behind = array("I")
        """Bytes of each text behind the prefix of its outcome; 0 once it is taken."""
        self._taken = 0

    def __len__(self) -> int:
        return len(self._numbers) - self._taken

    def add(self, numbers: Integers, texts: Texts) -> None:
        """Add texts of later predictions, whose numbers ascend, shape (n,)."""
        if self._taken >= COMPACT_AFTER and COMPACT_RATIO * self._taken >= len(self._numbers):
            self.compact()
        added = texts.copy()
        self._numbers.frombytes(numbers.tobytes())
        self._offsets.frombytes((added.ends + np.uint64(len(self._buffer))).tobytes())
        self._behind.frombytes((added.ends - added.prefix_ends).astype(np.uint32).tobytes())
        self._buffer += added.buffer.data

    def take(self, numbers: Integers) -> Texts:
        """Return texts in the order of these numbers, shape (n,). They are kept no longer."""
        own, behind = np.frombuffer(self._numbers, np.int64), np.frombuffer(self._behind, np.uint32)
        rows, lengths = np.searchsorted(own, numbers), np.empty(len(numbers), dtype=np.uint32)
        assert _take(own, numbers, rows, behind, lengths), "a prediction has two outcomes"
        self._taken += len(rows)
        offsets = np.frombuffer(self._offsets, dtype=np.uint64)
        ends = offsets[rows + 1]
        # A copy, because a buffer to which something refers cannot grow.
        return Texts(np.frombuffer(self._buffer, dtype=np.uint8), offsets[rows], ends - lengths, ends).copy()

    def compact(self) -> None:
        """Free the room of texts that were taken. `add` does so when there are many."""
        behind, offsets = np.frombuffer(self._behind, np.uint32), np.frombuffer(self._offsets, np.uint64)
        rows = np.flatnonzero(behind)
        begins, ends = offsets[rows], offsets[rows + 1]
        _move(np.frombuffer(self._buffer, dtype=np.uint8), begins, ends)
        moved = np.append(np.uint64(0), np.cumsum(ends - begins, dtype=np.uint64))
        del self._buffer[int(moved[-1]) :]
        self._numbers = array("q", np.frombuffer(self._numbers, np.int64)[rows].tobytes())
        self._offsets = array("Q", moved.tobytes())
        self._behind = array("I", behind[rows].tobytes())
        self._taken = 0


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    waiting, numbers = WaitingTexts(), np.zeros(1, dtype=np.int64)
    waiting.add(numbers, Texts.of([b"{}"], [1]))
    waiting.take(numbers)
    waiting.compact()


@njit(cache=True, nogil=True)
def _take(own: Integers, numbers: Integers, rows: Integers, behind: Lengths, lengths: Lengths) -> bool:
    """Write the lengths behind the prefixes, and set them to 0.

    Parameters
    ----------
    own
        The numbers of all texts, shape (m,).
    numbers, rows
        Those of the texts that are taken, and where they are if they are there, shape (n,).
    behind
        The lengths of all texts, shape (m,). Changed.
    lengths
        Written: those of these texts, shape (n,).

    Returns
    -------
    bool
        Whether each was there.
    """
    for i in range(rows.shape[0]):
        row = rows[i]
        if row >= own.shape[0] or own[row] != numbers[i] or not behind[row]:
            return False
        lengths[i], behind[row] = behind[row], 0
    return True


@njit(cache=True, nogil=True)
def _move(buffer: Bytes, begins: Offsets, ends: Offsets) -> None:
    """Move texts to the front of their buffer, byte by byte from the first on, because they may overlap."""
    at = np.uint64(0)
    for i in range(begins.shape[0]):
        begin, length = begins[i], ends[i] - begins[i]
        for k in range(length):
            buffer[at + k] = buffer[begin + k]
        at += length
