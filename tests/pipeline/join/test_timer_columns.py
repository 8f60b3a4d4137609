"""A line in columns does what a list of entries does."""

from __future__ import annotations

from typing import TypeAlias
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.join import timer_columns as waiting_line
from pipeline.join.timer_columns import OrderedTimers, Timer
from pipeline.records.fields import Id

Act: TypeAlias = tuple[str, int]

acts = st.lists(
    st.tuples(st.sampled_from(["append", "extend", "drop", "skip", "keep", "take"]), st.integers(0, 6)),
    max_size=60,
)


@given(drawn=acts, spent=st.integers(1, 5))
def test_ordered_timers_are_a_list_of_timers(drawn: list[Act], spent: int) -> None:
    with patch.object(waiting_line, "COMPACT_AFTER", spent):
        line, plain, made = OrderedTimers(), list[Timer](), 0
        for act, amount in drawn:
            if act == "append":
                plain.append(_timer(made))
                line.append(_timer(made))
                made += 1
            elif act == "extend":
                added = [_timer(number) for number in range(made, made + amount)]
                plain += added
                deadlines = np.array([each[0] for each in added], dtype=np.int64)
                line.extend(deadlines, np.arange(made, made + amount), [each[2] for each in added])
                made += amount
            elif act == "take":
                time = (plain[0][0] if plain else 0) + amount
                due = [each for each in plain if each[0] < time]
                del plain[: len(due)]
                assert list(line.pop_until(time)) == [each[1:] for each in due]
            elif act == "keep":
                plain = [each for each in plain if each[1] % 3 != amount % 3]
                left = {each[1:] for each in plain}
                line.retain(lambda *entry, left=left: entry in left)
            elif act == "skip":
                del plain[:amount]
                left = {each[1:] for each in plain}
                line.drop_stale_head(lambda *entry, left=left: entry in left)
            elif plain:
                del plain[0]
                line.drop()
            assert list(line) == plain
            assert len(line) == len(plain)
            assert line.head == (plain[0] if plain else None)
            if plain:
                assert line.last == plain[-1][:2]


def test_room_of_popped_timers_is_freed() -> None:
    line = OrderedTimers()
    for number in range(3 * waiting_line.COMPACT_AFTER):
        line.append(_timer(number))
    for _ in range(2 * waiting_line.COMPACT_AFTER):
        line.drop()
    assert len(line._deadlines) == len(line._numbers) == len(line._ids) < 2 * waiting_line.COMPACT_AFTER


def test_popped_timers_of_a_long_queue_take_little_room() -> None:
    line = OrderedTimers()
    for number in range(100):
        line.append(_timer(number))
    with patch.object(waiting_line, "COMPACT_AFTER", 1):
        for left in range(99, 0, -1):
            line.drop()
            assert len(line._ids) <= left * waiting_line.COMPACT_RATIO / (waiting_line.COMPACT_RATIO - 1) + 1


def _timer(number: int) -> Timer:
    event_id: Id = f"event {number}" if number % 3 else number
    return number // 2, number, event_id
