"""Deadlines that come in order, in columns: as objects, hundreds of thousands would litter the memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from pipeline.records import Id

Entry: TypeAlias = tuple[int, int, Id]
"""A deadline, the number of a value, and its event."""

SPENT = 4_096
"""Entries taken, at least, before the room that they took is made free."""


class WaitingLine:
    """Entries in their order; they are added at the end and taken from the beginning.

    Examples
    --------
    >>> line = WaitingLine()
    >>> line.extend([10, 30], [0, 1], ["a", "b"])
    >>> line.head, line.last, len(line)
    ((10, 0, 'a'), (30, 1), 2)
    >>> list(line.take_until(30)), list(line)
    ([(0, 'a')], [(30, 1, 'b')])
    >>> line.drop()
    >>> line.head is None
    True
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._deadlines, self._numbers = array("q"), array("q")
        self._ids: deque[Id] = deque()
        self._at = 0
        """Entries taken that are still in the first two columns."""
        for entry in entries:
            self.append(entry)

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Entry]:
        return zip(self._deadlines[self._at :], self._numbers[self._at :], self._ids, strict=True)

    @property
    def head(self) -> Entry | None:
        """The first entry, if there is one."""
        return (self._deadlines[self._at], self._numbers[self._at], self._ids[0]) if self._ids else None

    @property
    def last(self) -> tuple[int, int]:
        """Deadline and number of the last entry, of at least one."""
        return self._deadlines[-1], self._numbers[-1]

    def append(self, entry: Entry) -> None:
        """Add an entry, later than all."""
        deadline, number, event_id = entry
        self._deadlines.append(deadline)
        self._numbers.append(number)
        self._ids.append(event_id)

    def extend(self, deadlines: Sequence[int], numbers: Sequence[int], event_ids: Sequence[Id]) -> None:
        """Add entries, later than all, in their order."""
        self._deadlines.extend(deadlines)
        self._numbers.extend(numbers)
        self._ids.extend(event_ids)

    def drop(self) -> None:
        """Take the first entry."""
        self._ids.popleft()
        self._forget(1)

    def take_until(self, time: int) -> Iterator[tuple[int, Id]]:
        """Take the entries whose deadline lies before `time`: their numbers and events."""
        end = bisect_left(self._deadlines, time, self._at)
        numbers = self._numbers[self._at : end]
        ids = [self._ids.popleft() for _ in numbers]
        self._forget(len(ids))
        return zip(numbers, ids, strict=True)

    def _forget(self, count: int) -> None:
        self._at += count
        if self._at >= SPENT and 2 * self._at >= len(self._deadlines):
            del self._deadlines[: self._at], self._numbers[: self._at]
            self._at = 0
