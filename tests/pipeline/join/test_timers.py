from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.join import timers as deadlines
from pipeline.join.timers import TimerQueue
from pipeline.records.fields import Id


class CheckedTimers:
    """A table of numbers and its deadlines, and the same as a list to search through."""

    def __init__(self, room: int) -> None:
        self.table: dict[Id, int] = {}
        self.due_at: dict[int, int] = {}
        self.room = room
        self.deadlines = TimerQueue(self.table, lambda number: number, lambda: len(self.table) > room)

    def add(self, event_id: int, deadline: int) -> None:
        number = len(self.due_at)
        self.table[event_id] = number
        self.due_at[number] = deadline
        self.deadlines.add(deadline, number, event_id)

    def settle(self, time: int) -> list[int]:
        return [self.table.pop(event_id) for event_id in self.deadlines.due(time)]

    def search(self, time: int) -> list[int]:
        """Find what the queue has to find."""
        left = sorted(self.table.values(), key=lambda number: (self.due_at[number], number))
        surplus = len(left) - self.room
        return [each for index, each in enumerate(left) if index < surplus or self.due_at[each] < time]


acts = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 9), st.integers(0, 30)),
    st.tuples(st.just("leave"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("settle"), st.just(0), st.integers(0, 30)),
)


@given(drawn=st.lists(acts, max_size=60), room=st.integers(0, 6))
def test_the_due_are_those_that_a_search_finds_and_what_waits_follows_the_table(
    drawn: list[tuple[str, int, int]], room: int
) -> None:
    spare = deadlines.STALE_ALLOWANCE
    deadlines.STALE_ALLOWANCE = 2
    try:
        timers = CheckedTimers(room)
        for act, event_id, time in drawn:
            if act == "add":
                timers.add(event_id, time)
            elif act == "leave":
                timers.table.pop(event_id, None)
            else:
                expected = timers.search(time)
                assert timers.settle(time) == expected
            assert len(timers.deadlines) <= 2 * max(10, len(timers.table)) + 2
    finally:
        deadlines.STALE_ALLOWANCE = spare


def test_entries_of_what_has_left_do_not_add_up() -> None:
    timers = CheckedTimers(room=10)
    for number in range(10_000):
        timers.add(number, 10_000)
        del timers.table[number]
    assert len(timers.deadlines) <= deadlines.STALE_ALLOWANCE + 2
    assert timers.settle(20_000) == []
