"""A timer queue: the entries of a table in the order of their deadlines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.join.timer_columns import OrderedTimers, Timer
from pipeline.records.fields import Id

Value = TypeVar("Value")

STALE_ALLOWANCE = 1_000
"""Stale timers that are not worth a search for them."""
NEVER: Final = 2**63
"""Later than any deadline."""


class TimerQueue(Generic[Value]):
    """Finds what is due in a table of events.

    Deadlines mostly come in ascending order. Those are kept in columns, at a cost that does not grow with
    their number; those that come out of order are kept in a heap. Timers of events that left the table before
    are stale: they are skipped when they are due, and dropped when most timers are stale. So memory follows
    the size of the table.

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
        self._ordered = OrderedTimers()
        self._heap: list[Timer] = []
        self._sweep_above = STALE_ALLOWANCE

    def __len__(self) -> int:
        return len(self._ordered) + len(self._heap)

    def add(self, deadline: int, number: int, event_id: Id) -> None:
        """Note the deadline of an event that is in the table now."""
        timer, ordered = (deadline, number, event_id), self._ordered
        if not ordered or (deadline, number) > ordered.last:
            ordered.append(timer)
        else:
            heappush(self._heap, timer)
        self.first = min(self.first, deadline)
        if len(ordered) + len(self._heap) > self._sweep_above:
            self._drop_stale()

    def add_all(
        self, deadlines: NDArray[np.int64], numbers: NDArray[np.int64], event_ids: Sequence[Id]
    ) -> None:
        """`add` each."""
        if not len(deadlines):
            return
        ordered, first = self._ordered, int(deadlines[0])
        if (ordered and first <= ordered.last[0]) or (deadlines[1:] < deadlines[:-1]).any():
            for each in zip(deadlines.tolist(), numbers.tolist(), event_ids, strict=True):
                self.add(*each)
            return
        ordered.extend(deadlines, numbers, event_ids)
        self.first = min(self.first, first)
        if len(self) > self._sweep_above:
            self._drop_stale()

    def next(self) -> int:
        """Return the earliest deadline of a value that is in the table, `NEVER` if it is empty."""
        heap = self._heap
        self._ordered.drop_stale_head(self._is_live)
        while heap and not self._is_live(*heap[0][1:]):
            heappop(heap)
        head = self._head()
        self.first = NEVER if head is None else head[0]
        return self.first

    def due(self, time: int) -> Iterator[Id]:
        """Yield events whose deadline lies before `time`, or for which there is no room, by deadline.

        The caller removes each from the table before it asks for the next.
        """
        while (head := self._head()) is not None:
            deadline, number, event_id = head
            held = self._is_live(number, event_id)
            if held and deadline >= time and not self._over_capacity():
                self.first = deadline
                return
            self._drop(head)
            if held:
                yield event_id
        self.first = NEVER

    def pop_until(self, time: int) -> Iterator[tuple[int, Id]]:
        """Remove timers that are due at `time` and in ascending order, at less cost than `due`.

        Returns their numbers and events, some of which may have left the table; `due` yields the rest.
        """
        return self._ordered.pop_until(min(time, self._heap[0][0]) if self._heap else time)

    def _head(self) -> Timer | None:
        """Return the timer with the earliest deadline."""
        first, heap = self._ordered.head, self._heap
        return heap[0] if heap and (first is None or heap[0] < first) else first

    def _drop(self, head: Timer) -> None:
        if head == self._ordered.head:
            self._ordered.drop()
        else:
            heappop(self._heap)

    def _drop_stale(self) -> None:
        """Drop stale timers, and set the number of timers above which to do so again."""
        self._ordered.retain(self._is_live)
        self._heap = [timer for timer in self._heap if self._is_live(*timer[1:])]
        heapify(self._heap)
        self._sweep_above = 2 * len(self) + STALE_ALLOWANCE

    def _is_live(self, number: int, event_id: Id) -> bool:
        """Whether the value of this number and event is in the table."""
        value = self._table.get(event_id)
        return value is not None and self._number(value) == number
