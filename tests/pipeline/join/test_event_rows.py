from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.join import event_rows
from pipeline.join.digests import Digester
from pipeline.join.event_rows import IN_HEAP, NEVER, NO_ROW, ORDERED, EventRows

DIGESTS = Digester(bytes(16)).digests


class CheckedRows:
    """Rows, and the same as a list of numbers with deadlines to search through."""

    def __init__(self) -> None:
        self.rows = EventRows(["note"], {"half": np.float64})
        self.held: dict[int, int] = {}
        self.made = 0

    def append(self, deadlines: list[int], gap: int) -> None:
        numbers = self.made + gap + np.arange(len(deadlines))
        self.made = int(numbers[-1]) + 1
        columns = {"note": -numbers, "half": numbers / 2}
        apart = np.array([place for place, number in enumerate(numbers) if number % 7 == 0], dtype=np.int64)
        self.rows.append(DIGESTS(numbers.tolist()), numbers, np.array(deadlines), apart, **columns)
        self.held |= dict(zip(numbers.tolist(), deadlines, strict=True))

    def remove(self, places: list[int]) -> None:
        numbers = sorted({[*self.held][place % len(self.held)] for place in places}) if self.held else []
        self.rows.remove(self.rows.find(DIGESTS(numbers)))
        for number in numbers:
            del self.held[number]

    def by_deadline(self) -> list[int]:
        return sorted(self.held, key=lambda number: (self.held[number], number))

    def check(self) -> None:
        rows, live = self.rows, self.rows.live()
        numbers = [*self.held]
        assert len(rows) == len(numbers)
        assert rows.numbers[live].tolist() == numbers
        assert rows.deadlines[live].tolist() == [*self.held.values()]
        assert rows.integers("note")[live].tolist() == [-number for number in numbers]
        assert rows["half"][live].tolist() == [number / 2 for number in numbers]
        assert rows.find(DIGESTS(numbers)).tolist() == live.tolist()
        assert (rows.find(DIGESTS([*({*range(self.made)} - {*numbers})])) == NO_ROW).all()
        assert rows.oldest() == (live[0] if len(live) else NO_ROW)
        assert rows.first <= min(self.held.values(), default=NEVER)
        assert rows.next_deadline() == rows.first == min(self.held.values(), default=NEVER)
        for number in numbers[:3]:
            assert rows.numbers[rows.from_number(number)] == number


acts = st.one_of(
    st.tuples(st.just("append"), st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(0, 2)),
    st.tuples(st.just("ascend"), st.integers(1, 30), st.integers(0, 5)),
    st.tuples(st.just("remove"), st.lists(st.integers(0, 99), min_size=1, max_size=20), st.just(0)),
    st.tuples(st.just("until"), st.integers(0, 45), st.just(0)),
    st.tuples(st.just("first"), st.integers(0, 45), st.integers(0, 6)),
    st.tuples(st.just("due"), st.integers(0, 45), st.just(0)),
)


@given(drawn=st.lists(acts, max_size=40))
def test_rows_hold_what_a_search_finds(drawn: list[tuple[str, list[int] | int, int]]) -> None:
    with patch.multiple(event_rows, FEWEST_ROWS=4, SPARE_ROWS=4, STALE_ALLOWANCE=2):
        checked = CheckedRows()
        for act, given_, more in drawn:
            rows = checked.rows
            if isinstance(given_, list):
                checked.append(given_, more) if act == "append" else checked.remove(given_)
            elif act == "ascend":
                last = max(checked.held.values(), default=0)
                checked.append([last + more * place for place in range(given_)], 0)
            elif act == "until":
                due = [number for number in checked.by_deadline() if checked.held[number] < given_]
                assert rows.remove_until(given_).tolist() == due
                for number in due:
                    del checked.held[number]
            elif act == "first":
                wanted = checked.by_deadline()
                due = [number for number in wanted if checked.held[number] < given_]
                found = rows.numbers[rows.first_rows(given_, more, 2 * more + 1)]
                assert found.tolist() == wanted[: min(max(len(due), more), 2 * more + 1)]
                assert rows.remove_first(more).tolist() == wanted[:more]
                for number in wanted[:more]:
                    del checked.held[number]
            else:
                first = next(iter(checked.by_deadline()), None)
                row = rows.next_due(given_)
                if first is None or checked.held[first] >= given_:
                    assert row == NO_ROW
                else:
                    assert rows.numbers[row] == first
            checked.check()


def test_memory_follows_the_number_of_events() -> None:
    rows = EventRows()
    for begin in range(0, 100_000, 500):
        numbers = np.arange(begin, begin + 500)
        rows.append(DIGESTS(numbers.tolist()), numbers, numbers)
        rows.remove_until(begin - 1_500)
    assert len(rows) == 2_000
    assert len(rows._columns["digests"]) <= 1.1 * (2_500 + event_rows.SPARE_ROWS)


def test_rows_behind_those_apart_are_ordered() -> None:
    rows, numbers = EventRows(), np.arange(4)
    rows.append(DIGESTS(numbers.tolist()), numbers, np.array([1, 90, 2, 3]), np.array([1]))
    assert rows["states"].tolist() == [ORDERED, IN_HEAP, ORDERED, ORDERED]
    rows.append(DIGESTS([4]), np.array([4]), np.array([4]))
    assert rows["states"][-1] == ORDERED
    assert rows.first_rows(91).tolist() == [0, 2, 3, 4, 1]


def test_deadlines_that_descend_leave_no_stale_ones_behind() -> None:
    rows = EventRows()
    for number in range(3_000):
        rows.append(DIGESTS([number]), np.array([number]), np.array([10_000 - number]))
        rows.remove(rows.find(DIGESTS([number - 2])) if number > 1 else np.empty(0, dtype=np.int64))
    assert len(rows) == 2
    assert len(rows._heap) <= event_rows.STALE_ALLOWANCE + 10
