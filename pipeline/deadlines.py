"""The entries of a table in the order of their deadlines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from pipeline.records import Id

Value = TypeVar("Value")

SPARE = 1_000
"""Entries without a value that are not worth a search for them."""


class Deadlines(Generic[Value]):
    """Finds what is due in a table of events.

    A heap, from which only the first can be taken. The entries of events that leave the table before are
    passed over when they come up, and searched for when they are most of the heap: it stays within the
    size of the table, not of all that has been in it.

    Parameters
    ----------
    table
        Values by event.
    number
        The number of a value, which tells it from earlier and later ones of the same event.
    crowded
        Whether the table holds more than it should.

    Examples
    --------
    >>> table = {"a": 0, "b": 1, "c": 2}
    >>> deadlines = Deadlines(table, number=lambda value: value, crowded=lambda: len(table) > 2)
    >>> for deadline, event_id in ((30, "a"), (10, "b"), (20, "c")):
    ...     deadlines.add(deadline, table[event_id], event_id)
    >>> [table.pop("bac"[value - 1]) for value in deadlines.due(5)]
    [1]
    """

    def __init__(
        self, table: Mapping[Id, Value], number: Callable[[Value], int], crowded: Callable[[], bool]
    ) -> None:
        self._table = table
        self._number = number
        self._crowded = crowded
        self._heap: list[tuple[int, int, Id]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, deadline: int, number: int, event_id: Id) -> None:
        """Note the deadline of an event that is in the table now."""
        heappush(self._heap, (deadline, number, event_id))
        if len(self._heap) > 2 * len(self._table) + SPARE:
            self._heap = [entry for entry in self._heap if self._find(entry) is not None]
            heapify(self._heap)

    def due(self, time: int) -> Iterator[Value]:
        """Values whose deadline lies before `time`, or for which there is no room, by deadline.

        The caller takes each from the table before it asks for the next.
        """
        if not self._heap or (self._heap[0][0] >= time and not self._crowded()):
            return iter(())  # nearly always: this is asked several times for each event
        return self._search(time)

    def _search(self, time: int) -> Iterator[Value]:
        while self._heap:
            entry = self._heap[0]
            value = self._find(entry)
            if value is None:
                heappop(self._heap)
            elif entry[0] < time or self._crowded():
                heappop(self._heap)
                yield value
            else:
                return

    def _find(self, entry: tuple[int, int, Id]) -> Value | None:
        _, number, event_id = entry
        value = self._table.get(event_id)
        return value if value is not None and self._number(value) == number else None
