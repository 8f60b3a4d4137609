"""An index of event ids by 128-bit digests: a hash table with open addressing, compiled.

A slot of four bytes holds a row, and at most `MAX_LOAD` of the slots are taken. The digests themselves stand
where the rows are (`pipeline.join.event_rows`, `pipeline.join.spill_columns`).
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
GROWTH: Final = 1.25
"""Room for each row, at most, where the table grows."""
FEWEST: Final = 600
"""Rows for which there is room in the smallest table."""
EMPTY: Final = -1
"""A slot without a row, and the row of an id that is not there."""


class DigestIndex:
    """Finds rows by the digests of their event ids.

    Parameters
    ----------
    room
        Rows up to which the table does not grow.

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

    def __init__(self, room: int = FEWEST) -> None:
        self._slots = _empty(room)
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
            before, self._slots = self._slots, _empty(int(GROWTH * self._count))
            _insert(self._slots, digests, before[before >= 0].astype(np.int64))
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


def _empty(room: int) -> Slots:
    """Return a table with room for so many rows."""
    return np.full(int(max(room, FEWEST) / MAX_LOAD) + 1, EMPTY, dtype=np.int32)


@njit(cache=True, nogil=True)
def _home(slots: Slots, digests: Digests, row: int | np.int64) -> np.int64:
    """Return the slot where the search for a row begins: the upper half of the digest, scaled down."""
    half = np.uint64(32)
    return np.int64(((digests[row, 0] >> half) * np.uint64(len(slots))) >> half)


@njit(cache=True, nogil=True)
def _insert(slots: Slots, digests: Digests, rows: Rows) -> None:
    for row in rows:
        at = _home(slots, digests, row)
        while slots[at] >= 0:
            at = _next(slots, at)
        slots[at] = row


@njit(cache=True, nogil=True)
def _next(slots: Slots, at: np.int64) -> np.int64:
    at += np.int64(1)
    return np.int64(0) if at == len(slots) else at


@njit(cache=True, nogil=True)
def _find(slots: Slots, digests: Digests, wanted: Digests, found: Rows) -> None:
    for number in range(len(wanted)):
        at = _home(slots, wanted, number)
        while slots[at] >= 0:
            row = slots[at]
            if digests[row, 0] == wanted[number, 0] and digests[row, 1] == wanted[number, 1]:
                break
            at = _next(slots, at)
        found[number] = slots[at]


@njit(cache=True, nogil=True)
def _remove(slots: Slots, digests: Digests, rows: Rows) -> None:
    """Remove rows, and move later ones of the same run back into the gap, where a search may pass it."""
    for row in rows:
        gap = _home(slots, digests, row)
        while slots[gap] != row:
            gap = _next(slots, gap)
        at = gap
        while True:
            at = _next(slots, at)
            if slots[at] < 0:
                break
            home = _home(slots, digests, np.int64(slots[at]))
            # A row stays if it is at home behind the gap and not behind its place, around the end or not.
            stays = gap < home <= at if gap < at else home > gap or home <= at
            if not stays:
                slots[gap] = slots[at]
                gap = at
        slots[gap] = EMPTY
