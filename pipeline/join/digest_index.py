"""An index of event ids by 128-bit digests: a hash table with open addressing, compiled.

An entry takes four bytes in a table that is at most `MAX_LOAD` full. The digests themselves stand where the
rows are (`pipeline.join.spill`).

Numba's cache on disk knows a function by its own file only: nothing here depends on another one.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit
from pipeline.join.digests import Digests

Rows: TypeAlias = NDArray[np.int64]
Slots: TypeAlias = NDArray[np.int32]

MAX_LOAD: Final = 0.6
"""Share of the slots that hold a row, at most. With linear probing, a search then ends after a few slots."""
FEWEST_SLOTS: Final = 1_024
EMPTY: Final = -1
"""A slot without a row, and the row of an id that is not there."""


class DigestIndex:
    """Finds rows by the digests of their event ids.

    Examples
    --------
    >>> from pipeline.join.digests import Digester
    >>> digests = Digester(bytes(16)).digests(["a", "b", "c"])
    >>> index = DigestIndex()
    >>> index.insert(digests, np.array([0, 2]))
    >>> index.find(digests, digests).tolist()
    [0, -1, 2]
    >>> index.remove(digests, np.array([0]))
    >>> index.find(digests, digests).tolist(), len(index)
    ([-1, -1, 2], 1)
    """

    def __init__(self) -> None:
        self._slots: Slots = np.full(FEWEST_SLOTS, EMPTY, dtype=np.int32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def insert(self, digests: Digests, rows: Rows) -> None:
        """Add rows that are not in the index.

        Parameters
        ----------
        digests
            Digests of all rows, shape (rows, 2).
        rows
            The rows to add, below 2**31.
        """
        self._count += len(rows)
        if self._count > MAX_LOAD * len(self._slots):
            before, size = self._slots, len(self._slots)
            while self._count > MAX_LOAD * size:
                size *= 2
            self._slots = np.full(size, EMPTY, dtype=np.int32)
            _insert(self._slots, digests, before[before >= 0])
        _insert(self._slots, digests, rows)

    def find(self, digests: Digests, wanted: Digests) -> Rows:
        """Return the row of each of some digests, `EMPTY` where there is none.

        Parameters
        ----------
        digests
            Digests of all rows, shape (rows, 2).
        wanted
            Digests to look for, shape (n, 2).
        """
        found = np.empty(len(wanted), dtype=np.int64)
        _find(self._slots, digests, wanted, found)
        return found

    def remove(self, digests: Digests, rows: Rows) -> None:
        """Remove rows that are in the index; the parameters are those of `insert`."""
        self._count -= len(rows)
        _remove(self._slots, digests, rows)


@njit(cache=True, nogil=True)
def _insert(slots: Slots, digests: Digests, rows: Rows | Slots) -> None:
    mask = np.uint64(len(slots) - 1)
    for row in rows:
        at = digests[row, 0] & mask
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = row


@njit(cache=True, nogil=True)
def _find(slots: Slots, digests: Digests, wanted: Digests, found: Rows) -> None:
    mask = np.uint64(len(slots) - 1)
    for number in range(len(wanted)):
        at = wanted[number, 0] & mask
        while slots[at] >= 0:
            row = slots[at]
            if digests[row, 0] == wanted[number, 0] and digests[row, 1] == wanted[number, 1]:
                break
            at = (at + np.uint64(1)) & mask
        found[number] = slots[at]


@njit(cache=True, nogil=True)
def _remove(slots: Slots, digests: Digests, rows: Rows) -> None:
    """Remove rows, and move later ones of the same run back into the gap, where a search may pass it."""
    mask = np.uint64(len(slots) - 1)
    for row in rows:
        gap = digests[row, 0] & mask
        while slots[gap] != row:
            gap = (gap + np.uint64(1)) & mask
        at = gap
        while True:
            at = (at + np.uint64(1)) & mask
            if slots[at] < 0:
                break
            home = digests[slots[at], 0] & mask
            if ((at - home) & mask) >= ((at - gap) & mask):
                slots[gap] = slots[at]
                gap = at
        slots[gap] = EMPTY
