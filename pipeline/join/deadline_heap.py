"""A heap of rows by their deadlines, compiled."""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit

Integers: TypeAlias = NDArray[np.int64]
States: TypeAlias = NDArray[np.uint8]

FEWEST = 64
"""Entries for which there is always room."""


class DeadlineHeap:
    """Rows by deadline, and by row where deadlines are equal. Rows that have left are dropped when they come.

    Parameters
    ----------
    here
        The state of a row that is in the heap: any other has left.

    Examples
    --------
    >>> heap = DeadlineHeap(here=1)
    >>> heap.push(np.array([30, 10, 20]), np.array([4, 5, 6]))
    >>> states = np.ones(7, dtype=np.uint8)
    >>> heap.first(states), heap.first_rows(states, time=25, least=0, most=9).tolist(), len(heap)
    (5, [5, 6], 3)
    >>> states[5] = 0
    >>> heap.first(states), len(heap)
    (6, 2)
    """

    def __init__(self, here: int) -> None:
        self._here = here
        self._deadlines, self._rows = np.empty((2, FEWEST), dtype=np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, deadlines: Integers, rows: Integers) -> None:
        """Add rows."""
        needed = self._size + len(rows)
        if needed > len(self._rows):
            grown = np.empty((2, 2 * needed), dtype=np.int64)
            grown[0, : self._size], grown[1, : self._size] = (
                self._deadlines[: self._size],
                self._rows[: self._size],
            )
            self._deadlines, self._rows = grown
        self._size = int(_push_all(self._deadlines, self._rows, self._size, deadlines, rows))

    def replace(self, deadlines: Integers, rows: Integers) -> None:
        """Keep these rows and no others."""
        self._deadlines, self._rows = np.empty((2, max(FEWEST, 2 * len(rows))), dtype=np.int64)
        self._size = 0
        self.push(deadlines, rows)

    def first(self, states: States) -> int:
        """Return the first row, -1 without one.

        Parameters
        ----------
        states
            The states of all rows.
        """
        self._size = int(_drop(self._deadlines, self._rows, self._size, states, self._here))
        return int(self._rows[0]) if self._size else -1

    def first_rows(self, states: States, time: int, least: int, most: int) -> Integers:
        """Return the first rows, in order: see `pipeline.join.event_rows.EventRows.first_rows`."""
        if not self._size:
            return np.empty(0, dtype=np.int64)
        found = np.empty(min(self._size, most), dtype=np.int64)
        count, size = _first(self._deadlines, self._rows, self._size, states, self._here, time, least, found)
        self._size = int(size)
        return found[:count]


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    heap, states, one = DeadlineHeap(1), np.ones(1, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    heap.push(one, one)
    heap.first(states)
    heap.first_rows(states, 1, 0, 1)


@njit(cache=True, nogil=True)
def _before(deadlines: Integers, rows: Integers, a: int, b: int) -> bool:
    if deadlines[a] != deadlines[b]:
        return bool(deadlines[a] < deadlines[b])
    return bool(rows[a] < rows[b])


@njit(cache=True, nogil=True)
def _swap(deadlines: Integers, rows: Integers, a: int, b: int) -> None:
    deadlines[a], deadlines[b] = deadlines[b], deadlines[a]
    rows[a], rows[b] = rows[b], rows[a]


@njit(cache=True, nogil=True)
def _push(deadlines: Integers, rows: Integers, size: int, deadline: int, row: int) -> int:
    """Add a row; return the new size."""
    at = size
    deadlines[at], rows[at] = deadline, row
    while at > 0:
        parent = (at - 1) // 2
        if not _before(deadlines, rows, at, parent):
            break
        _swap(deadlines, rows, at, parent)
        at = parent
    return size + 1


@njit(cache=True, nogil=True)
def _push_all(deadlines: Integers, rows: Integers, size: int, new: Integers, new_rows: Integers) -> int:
    for number in range(len(new_rows)):
        size = _push(deadlines, rows, size, new[number], new_rows[number])
    return size


@njit(cache=True, nogil=True)
def _pop(deadlines: Integers, rows: Integers, size: int) -> int:
    """Remove the first row; return the new size."""
    size -= 1
    deadlines[0], rows[0] = deadlines[size], rows[size]
    at = 0
    while True:
        first, left, right = at, 2 * at + 1, 2 * at + 2
        if left < size and _before(deadlines, rows, left, first):
            first = left
        if right < size and _before(deadlines, rows, right, first):
            first = right
        if first == at:
            return size
        _swap(deadlines, rows, at, first)
        at = first


@njit(cache=True, nogil=True)
def _drop(deadlines: Integers, rows: Integers, size: int, states: States, here: int) -> int:
    """Remove rows that have left from the top; return the new size."""
    while size > 0 and states[rows[0]] != here:
        size = _pop(deadlines, rows, size)
    return size


@njit(cache=True, nogil=True)
def _first(
    deadlines: Integers,
    rows: Integers,
    size: int,
    states: States,
    here: int,
    time: int,
    least: int,
    found: Integers,
) -> tuple[int, int]:
    """Write the first rows that are wanted; return their number and the new size.

    What is taken out lies behind the heap until it is put back.
    """
    count, end = 0, size
    size = _drop(deadlines, rows, size, states, here)
    while size > 0 and count < len(found) and (deadlines[0] < time or count < least):
        deadline, row = deadlines[0], rows[0]
        found[count] = row
        count += 1
        size = _pop(deadlines, rows, size)
        end -= 1
        deadlines[end], rows[end] = deadline, row
        while size > 0 and states[rows[0]] != here:
            size = _pop(deadlines, rows, size)
    for number in range(end, end + count):  # the last one that was taken out comes first
        size = _push(deadlines, rows, size, deadlines[number], rows[number])
    return count, size
