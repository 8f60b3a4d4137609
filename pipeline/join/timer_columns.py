"""Timers in ascending order, in columns: as objects, hundreds of thousands would fragment the memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.records.fields import Id

Timer: TypeAlias = tuple[int, int, Id]
"""A deadline, the number of a value, and its event."""

COMPACT_AFTER = 4_096
"""Removed timers, at least, before their room is freed."""

COMPACT_RATIO = 8
"""At most one of so many rows, beyond `COMPACT_AFTER`, holds a removed timer."""


class OrderedTimers:
    """Timers in ascending order; they are added at the end and removed from the beginning.

    Examples
    --------
    >>> timers = OrderedTimers()
    >>> timers.extend(np.array([10, 30]), np.array([0, 1]), ["a", "b"])
    >>> timers.head, timers.last, len(timers)
    ((10, 0, 'a'), (30, 1), 2)
    >>> list(timers.pop_until(30)), list(timers)
    ([(0, 'a')], [(30, 1, 'b')])
    >>> timers.drop()
    >>> timers.head is None
    True
    """

    def __init__(self) -> None:
        self._deadlines, self._numbers = array("q"), array("q")
        self._ids: list[Id] = []
        self._head_index = 0
        """Row of the first timer: those before are removed."""

    def __len__(self) -> int:
        return len(self._ids) - self._head_index

    def __iter__(self) -> Iterator[Timer]:
        left = slice(self._head_index, None)
        return zip(self._deadlines[left], self._numbers[left], self._ids[left], strict=True)

    @property
    def head(self) -> Timer | None:
        """The first timer, if there is one."""
        at = self._head_index
        return (self._deadlines[at], self._numbers[at], self._ids[at]) if at < len(self._ids) else None

    @property
    def last(self) -> tuple[int, int]:
        """Deadline and number of the last timer, of at least one."""
        return self._deadlines[-1], self._numbers[-1]

    def append(self, timer: Timer) -> None:
        """Add a timer, later than all."""
        deadline, number, event_id = timer
        self._deadlines.append(deadline)
        self._numbers.append(number)
        self._ids.append(event_id)

    def extend(
        self, deadlines: NDArray[np.int64], numbers: NDArray[np.int64], event_ids: Sequence[Id]
    ) -> None:
        """Add timers, later than all, in their order."""
        self._deadlines.frombytes(deadlines.tobytes())
        self._numbers.frombytes(numbers.tobytes())
        self._ids.extend(event_ids)

    def drop(self) -> None:
        """Remove the first timer."""
        self._forget(1)

    def drop_stale_head(self, is_live: Callable[[int, Id], bool]) -> None:
        """Remove the timers before the first that is live, by its number and event."""
        numbers, ids, at = self._numbers, self._ids, self._head_index
        while at < len(ids) and not is_live(numbers[at], ids[at]):
            at += 1
        self._forget(at - self._head_index)

    def retain(self, is_live: Callable[[int, Id], bool]) -> None:
        """Remove the timers that are not live."""
        left = slice(self._head_index, None)
        deadlines, numbers, ids = self._deadlines[left], self._numbers[left], self._ids[left]
        kept = list(map(is_live, numbers, ids))
        self._deadlines = array("q", compress(deadlines, kept))
        self._numbers = array("q", compress(numbers, kept))
        self._ids = list(compress(ids, kept))
        self._head_index = 0

    def pop_until(self, time: int) -> Iterator[tuple[int, Id]]:
        """Remove the timers whose deadline lies before `time`, and return their numbers and events."""
        due = slice(self._head_index, bisect_left(self._deadlines, time, self._head_index))
        numbers, ids = self._numbers[due], self._ids[due]
        self._forget(len(ids))
        return zip(numbers, ids, strict=True)

    def _forget(self, count: int) -> None:
        self._head_index += count
        if self._head_index >= COMPACT_AFTER and COMPACT_RATIO * self._head_index >= len(self._ids):
            for column in (self._deadlines, self._numbers, self._ids):
                del column[: self._head_index]
            self._head_index = 0
