"""A timer queue: the entries of a table in the order of their deadlines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from pipeline.join.event_rows import NEVER
from pipeline.records.fields import Id

Value = TypeVar("Value")

STALE_ALLOWANCE = 1_000
"""Stale timers that are not worth a search for them."""


class TimerQueue(Generic[Value]):
    """Finds what is due in a table of events.

    Timers of events that left the table before are stale: they are skipped when they are due, and dropped
    when most timers are stale. So memory follows the size of the table.

    Parameters
    ----------
    table
        Values by event.
    number
        Returns the number of a value, which differs from that of other values of the same event.
    over_capacity
        Returns whether the table holds more than it should.

    Attributes
    ----------
    first
        No deadline lies before this: up to here nothing is due for its time.

    Examples
    --------
    >>> table = {"a": 0, "b": 1, "c": 2}
    >>> deadlines = TimerQueue(table, number=lambda value: value, over_capacity=lambda: len(table) > 2)
    >>> for deadline, event_id in ((30, "a"), (10, "b"), (20, "c")):
    ...     deadlines.add(deadline, table[event_id], event_id)
    >>> [table.pop(event_id) for event_id in deadlines.due(5)]
    [1]
    >>> deadlines.first
    20
    """

    def __init__(
        self, table: dict[Id, Value], number: Callable[[Value], int], over_capacity: Callable[[], bool]
    ) -> None:
        self.first = NEVER
        self._table = table
        self._number = number
        self._over_capacity = over_capacity
        self._heap: list[tuple[int, int, Id]] = []
        """Deadlines, numbers and events."""
        self._sweep_above = STALE_ALLOWANCE

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, deadline: int, number: int, event_id: Id) -> None:
        """Note the deadline of an event that is in the table now."""
        heappush(self._heap, (deadline, number, event_id))
        self.first = min(self.first, deadline)
        if len(self._heap) > self._sweep_above:
            self._drop_stale()

    def next(self) -> int:
        """Return the earliest deadline of a value that is in the table, `NEVER` if it is empty."""
        heap = self._heap
        while heap and not self._is_live(*heap[0][1:]):
            heappop(heap)
        self.first = heap[0][0] if heap else NEVER
        return self.first

    def due(self, time: int) -> Iterator[Id]:
        """Yield events whose deadline lies before `time`, or for which there is no room, by deadline.

        The caller removes each from the table before it asks for the next.
        """
        while self.next() < time or (self._heap and self._over_capacity()):
            yield heappop(self._heap)[2]

    def _drop_stale(self) -> None:
        """Drop stale timers, and set the number of timers above which to do so again."""
        self._heap = [timer for timer in self._heap if self._is_live(*timer[1:])]
        heapify(self._heap)
        self._sweep_above = 2 * len(self) + STALE_ALLOWANCE

    def _is_live(self, number: int, event_id: Id) -> bool:
        """Whether the value of this number and event is in the table."""
        value = self._table.get(event_id)
        return value is not None and self._number(value) == number
