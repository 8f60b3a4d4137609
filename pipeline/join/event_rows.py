"""Events in columns: found by the digests of their ids, due by their deadlines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit
from pipeline.join.deadline_heap import DeadlineHeap
from pipeline.join.digest_index import DigestIndex
from pipeline.join.digests import Digests
from pipeline.records.narrow_integers import NarrowIntegers
from pipeline.records.places import flagged

Integers: TypeAlias = NDArray[np.int64]
States: TypeAlias = NDArray[np.uint8]

NEVER: Final = 2**63
"""Later than any deadline."""
NO_ROW: Final = -1
_NO_ROWS: Final = np.empty(0, dtype=np.int64)
FEWEST_ROWS: Final = 1_024
STALE_ALLOWANCE: Final = 1_000
"""Stale entries of the heap that are not worth a search for them."""
REMOVED, ORDERED, IN_HEAP = 0, 1, 2
"""States of a row: it has left; no ordered row above it has a later deadline; it is in the heap."""
GROWTH: Final = 1 + 1 / 16
"""Room for each row, where the table grows."""
MOST_ROWS: Final = 1.25
"""Rows for each live one above which those that have left are overwritten, when there is no more room."""
SPARE_ROWS: Final = 8_192
"""Rows that have left which may stay in any case: to move the others again and again would cost more."""
CHUNK: Final = 1_024
"""Rows whose deadlines are looked at together."""


class EventRows:
    """Rows in the order of their numbers, which ascend.

    Deadlines mostly ascend too. Such rows need no timers of their own. Those whose deadlines come out of
    order are in a heap beside the rows. Rows that have left are overwritten when they are many and there is
    no room behind the last one, so that memory follows the number of events. Rows move then: a row's number
    finds it again.

    Parameters
    ----------
    integers
        Names of further columns of integers.
    columns
        Further columns by name: their dtype.
    moved
        Is called when rows move to the beginning, with those that are kept, in their order.
    resized
        Is called when there is room for so many rows.

    Attributes
    ----------
    first
        No deadline lies before this; `NEVER` without events.
    digests
        Digests of the rows, shape (rows, 2).
    numbers, deadlines
        Of the rows.

    Examples
    --------
    >>> rows = EventRows()
    >>> digests = np.arange(6, dtype=np.uint64).reshape(3, 2)
    >>> rows.append(digests, np.array([0, 1, 2]), np.array([30, 10, 20]))
    0
    >>> rows.next_due(15), rows.find(digests[[1, 2]]).tolist()
    (1, [1, 2])
    >>> rows.remove(np.array([1]))
    >>> rows.next_due(15), len(rows), rows.first
    (-1, 2, 20)
    """

    def __init__(
        self,
        integers: Sequence[str] = (),
        columns: Mapping[str, Any] | None = None,
        moved: Callable[[Integers], None] | None = None,
        resized: Callable[[int], None] | None = None,
    ) -> None:
        self._moved, self._resized = moved, resized
        self.numbers, self.deadlines = NarrowIntegers(), NarrowIntegers()
        self._integers = {name: NarrowIntegers() for name in integers}
        self._columns: dict[str, NDArray[Any]] = {
            "digests": np.empty((0, 2), dtype=np.uint64),
            "states": np.empty(0, dtype=np.uint8),
        }
        self._columns |= {name: np.empty(0, dtype) for name, dtype in (columns or {}).items()}
        self._index = DigestIndex()
        self._begin = self._head = self._end = 0
        """The first row that may be live, the first that may be live and ordered, and the end of all rows."""
        self._last = NO_ROW
        """Deadline of the last ordered row; it may have left."""
        self._heap = DeadlineHeap(IN_HEAP)
        """The rows that are not ordered."""
        self._sweep_above = STALE_ALLOWANCE
        self.first = NEVER

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column: all rows, also those that have left."""
        return self._columns[name][: self._end]

    @property
    def end(self) -> int:
        """One more than the last row."""
        return self._end

    def integers(self, name: str) -> NarrowIntegers:
        """Return a further column of integers."""
        return self._integers[name]

    @property
    def digests(self) -> Digests:
        return self["digests"]

    def find(self, digests: Digests) -> Integers:
        """Return the row of each digest, `NO_ROW` where there is none."""
        return self._index.find(self._columns["digests"], digests)

    def live(self, begin: int = 0) -> Integers:
        """Return the rows from one on that have not left, in the order of their numbers."""
        begin = max(begin, self._begin)
        return begin + flagged(self["states"][begin:])

    def from_number(self, number: int) -> int:
        """Return the first row of at least a number."""
        return int(self.numbers.search(number))

    def oldest(self) -> int:
        """Return the row of the lowest number, `NO_ROW` without events."""
        self._begin = _first_live(self._columns["states"], self._begin, self._end)
        return self._begin if self._begin < self._end else NO_ROW

    def append(
        self,
        digests: Digests,
        numbers: Integers,
        deadlines: Integers,
        apart: Integers = _NO_ROWS,
        **columns: NDArray[Any],
    ) -> int:
        """Add events that are not here, and return the row of the first.

        Parameters
        ----------
        digests
            Their digests, shape (n, 2).
        numbers
            Their numbers, ascending, above all that were added before; shape (n,).
        deadlines
            Shape (n,).
        apart
            Which of them have deadlines far behind those of the others. Were they ordered, those that come
            next would not be.
        **columns
            Further columns, all those of integers; what is not given of the others is undefined.
        """
        count = len(numbers)
        if not count:
            return self._end
        if self._end + count > len(self._columns["digests"]):
            self._make_room(count)
        begin, end = self._end, self._end + count
        self.numbers.append(numbers)
        self.deadlines.append(deadlines)
        for name, kept in self._integers.items():
            kept.append(columns.pop(name))
        self._columns["digests"][begin:end] = digests
        for name, column in columns.items():
            self._columns[name][begin:end] = column
        self._end = end
        states = self._columns["states"]
        states[begin:end] = ORDERED
        states[begin + apart] = IN_HEAP
        self._last = int(_order(deadlines, states[begin:end], self._last))
        if len(late := flagged(states[begin:end] == IN_HEAP)):
            self._heap.push(np.ascontiguousarray(deadlines[late]), begin + late)
        self._index.insert(self._columns["digests"], np.arange(begin, end))
        self.first = min(self.first, int(deadlines.min()))
        if len(self._heap) > self._sweep_above:
            self._drop_stale()
        return begin

    def remove(self, rows: Integers) -> None:
        """Remove rows."""
        if len(rows):
            self._index.remove(self._columns["digests"], rows)
            self._columns["states"][rows] = REMOVED

    def next_deadline(self) -> int:
        """Return the earliest deadline, `NEVER` without events."""
        row = self._earliest()
        self.first = NEVER if row == NO_ROW else int(self.deadlines[row])
        return self.first

    def next_due(self, time: int) -> int:
        """Return the first row by deadline and number, if its deadline lies before a time; else `NO_ROW`."""
        row = self._earliest()
        self.first = NEVER if row == NO_ROW else int(self.deadlines[row])
        return row if self.first < time else NO_ROW

    def remove_until(self, time: int) -> Integers:
        """Remove what is due before a time, and return its numbers."""
        if self.first >= time:
            return _NO_ROWS
        return self._remove_first(self.first_rows(time))

    def remove_first(self, count: int) -> Integers:
        """Remove so many rows, the first by deadline and number, and return their numbers."""
        return self._remove_first(self.first_rows(0, count, count))

    def _remove_first(self, rows: Integers) -> Integers:
        numbers: Integers = self.numbers[rows]
        self.remove(rows)
        self.next_deadline()
        return numbers

    def first_rows(self, time: int, least: int = 0, most: int = 2**31) -> Integers:
        """Return the first rows by deadline and number.

        Parameters
        ----------
        time
            All rows whose deadlines lie before it are wanted.
        least
            So many are wanted in any case, if there are as many.
        most
            The largest number of rows to return.
        """
        if not least and self.first >= time:
            return _NO_ROWS
        rows = self._first_ordered(time, least, most)
        late = self._heap.first_rows(self._columns["states"], time, least, most)
        if len(late):
            rows = np.concatenate([rows, late])
            deadlines = self.deadlines[rows]
            order = np.lexsort((rows, deadlines))
            due = int(np.searchsorted(deadlines[order], time))
            rows = rows[order[: min(max(due, least), most)]]
        return rows

    def _first_ordered(self, time: int, least: int, most: int) -> Integers:
        """Do as `first_rows`, among the ordered rows."""
        states, found, count = self._columns["states"], list[Integers](), 0
        self._head = begin = _first_ordered(states, self._head, self._end)
        while begin < self._end and count < most:
            end = min(begin + CHUNK, self._end)
            deadlines = self.deadlines[begin:end]
            stopped, rows = _first_due(states[begin:end], deadlines, time, least - count, most - count)
            found.append(begin + rows)
            count, begin = count + len(rows), end
            if stopped:
                break
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else _NO_ROWS

    def _earliest(self) -> int:
        """Return the first row by deadline and number."""
        states = self._columns["states"]
        self._head = head = _first_ordered(states, self._head, self._end)
        late = self._heap.first(states)
        if late < 0:
            return head if head < self._end else NO_ROW
        if head < self._end and (self.deadlines[head], head) < (self.deadlines[late], late):
            return head
        return late

    def _drop_stale(self) -> None:
        """Drop entries of the heap that have left, and set the size above which to do so again."""
        rows = self.live()
        rows = rows[self["states"][rows] == IN_HEAP]
        self._heap.replace(self.deadlines[rows], rows)
        self._sweep_above = 2 * len(rows) + STALE_ALLOWANCE

    def _make_room(self, count: int) -> None:
        """Move live rows to the beginning if many have left, and make room behind the last one."""
        live = len(self)
        if self._end > max(MOST_ROWS * live, live + SPARE_ROWS):
            self._move(self.live())
        needed, size = self._end + count, len(self._columns["digests"])
        if size < needed or size > GROWTH * max(MOST_ROWS * needed, needed + SPARE_ROWS):
            self._resize(max(FEWEST_ROWS, int(GROWTH * needed)))

    def _resize(self, size: int) -> None:
        for name, column in self._columns.items():
            moved = np.empty((size, *column.shape[1:]), column.dtype)
            moved[: self._end] = column[: self._end]
            self._columns[name] = moved
        if self._resized is not None:
            self._resized(size)

    def _move(self, kept: Integers) -> None:
        """Move rows, which ascend, to the beginning."""
        for column in self._columns.values():
            column[: len(kept)] = column[kept]
        for integers in (self.numbers, self.deadlines, *self._integers.values()):
            integers.keep(kept)
        if self._moved is not None:
            self._moved(kept)
        self._begin = self._head = 0
        self._end = len(kept)
        ordered = flagged(self["states"] == ORDERED)
        self._last = int(self.deadlines[int(ordered[-1])]) if len(ordered) else NO_ROW
        self._index = DigestIndex(self._end)
        self._index.insert(self._columns["digests"], np.arange(self._end))
        if len(self._heap):
            self._drop_stale()


@njit(cache=True, nogil=True)
def _order(deadlines: Integers, states: States, last: int) -> int:
    """Leave ordered the rows that can be, and return the last of their deadlines."""
    for row in range(len(deadlines)):
        if states[row] == 1:
            if deadlines[row] >= last:
                last = deadlines[row]
            else:
                states[row] = 2
    return last


@njit(cache=True, nogil=True)
def _first_live(states: States, begin: int, end: int) -> int:
    while begin < end and states[begin] == 0:
        begin += 1
    return begin


@njit(cache=True, nogil=True)
def _first_ordered(states: States, begin: int, end: int) -> int:
    while begin < end and states[begin] != 1:
        begin += 1
    return begin


@njit(cache=True, nogil=True, allocates=True)
def _first_due(
    states: States, deadlines: Integers, time: int, least: int, most: int
) -> tuple[bool, Integers]:
    """Return the first ordered rows, and whether the next one is not wanted: see `EventRows.first_rows`."""
    rows = np.empty(min(len(states), most), dtype=np.int64)
    count = 0
    for row in range(len(states)):
        if states[row] == 1:
            if count == most or (deadlines[row] >= time and count >= least):
                return True, rows[:count]
            rows[count] = row
            count += 1
    return False, rows[:count]
