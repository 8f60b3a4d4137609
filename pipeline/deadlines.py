"""The entries of a table in the order of their deadlines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeAlias, TypeVar

from pipeline.records import Id

Value = TypeVar("Value")
Entry: TypeAlias = tuple[int, int, Id]
"""A deadline, the number of a value, and its event."""

SPARE = 1_000
"""Entries without a value that are not worth a search for them."""
NEVER: Final = 2**63
"""Later than any deadline."""


class Deadlines(Generic[Value]):
    """Finds what is due in a table of events.

    Deadlines mostly come in order, and then wait in a line, which costs the same however long it is; those
    that come out of order wait in a heap. The entries of events that leave the table before are passed over
    when they come up, and searched for when they are most of what waits: that stays within the size of the
    table, not of all that has been in it.

    Parameters
    ----------
    table
        Values by event.
    number
        The number of a value, which tells it from earlier and later ones of the same event.
    crowded
        Whether the table holds more than it should.

    Attributes
    ----------
    first
        No deadline lies before this: up to here nothing is due for its time.

    Examples
    --------
    >>> table = {"a": 0, "b": 1, "c": 2}
    >>> deadlines = Deadlines(table, number=lambda value: value, crowded=lambda: len(table) > 2)
    >>> for deadline, event_id in ((30, "a"), (10, "b"), (20, "c")):
    ...     deadlines.add(deadline, table[event_id], event_id)
    >>> [table.pop("bac"[value - 1]) for value in deadlines.due(5)]
    [1]
    >>> deadlines.first
    20
    """

    def __init__(
        self, table: Mapping[Id, Value], number: Callable[[Value], int], crowded: Callable[[], bool]
    ) -> None:
        self.first = NEVER
        self._table = table
        self._number = number
        self._crowded = crowded
        self._line: deque[Entry] = deque()
        self._heap: list[Entry] = []
        self._most = SPARE

    def __len__(self) -> int:
        return len(self._line) + len(self._heap)

    def add(self, deadline: int, number: int, event_id: Id) -> None:
        """Note the deadline of an event that is in the table now."""
        entry, line = (deadline, number, event_id), self._line
        if not line or entry > line[-1]:
            line.append(entry)
        else:
            heappush(self._heap, entry)
        self.first = min(self.first, deadline)
        if len(line) + len(self._heap) > self._most:
            self._sweep()

    def due(self, time: int) -> Iterator[Value]:
        """Values whose deadline lies before `time`, or for which there is no room, by deadline.

        The caller takes each from the table before it asks for the next.
        """
        while self._line or self._heap:
            line, heap = self._line, self._heap
            out_of_order = not line or (bool(heap) and heap[0] < line[0])
            entry = heap[0] if out_of_order else line[0]
            value = self._find(entry)
            if value is not None and entry[0] >= time and not self._crowded():
                self.first = entry[0]
                return
            if out_of_order:
                heappop(heap)
            else:
                line.popleft()
            if value is not None:
                yield value
        self.first = NEVER

    def _sweep(self) -> None:
        """Drop the entries without a value, if they are many, and say when to look again."""
        self._line = deque(entry for entry in self._line if self._find(entry) is not None)
        self._heap = [entry for entry in self._heap if self._find(entry) is not None]
        heapify(self._heap)
        self._most = 2 * len(self) + SPARE

    def _find(self, entry: Entry) -> Value | None:
        _, number, event_id = entry
        value = self._table.get(event_id)
        return value if value is not None and self._number(value) == number else None
