"""The compiled heap beside a sorted list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.join.deadline_heap import FEWEST, DeadlineHeap

HERE, GONE = 2, 0

changes = st.lists(
    st.tuples(
        st.lists(st.integers(0, 20), max_size=FEWEST),  # deadlines of rows that come
        st.lists(st.integers(0, 300), max_size=8),  # rows that leave, if they are there
        st.integers(0, 25),  # what is asked for then: a time,
        st.integers(0, 10),  # the least number of rows,
        st.integers(1, 200),  # and the largest
    ),
    max_size=8,
)


@given(changes=changes)
def test_rows_come_by_deadline_and_then_by_row(
    changes: list[tuple[list[int], list[int], int, int, int]],
) -> None:
    heap, states, held = DeadlineHeap(HERE), np.zeros(0, dtype=np.uint8), dict[int, int]()
    for deadlines, leaving, time, least, most in changes:
        rows = np.arange(len(states), len(states) + len(deadlines))
        states = np.append(states, np.full(len(deadlines), HERE, dtype=np.uint8))
        heap.push(np.array(deadlines, dtype=np.int64), rows)
        held |= dict(zip(rows.tolist(), deadlines, strict=True))
        for row in leaving:
            if held.pop(row, None) is not None:
                states[row] = GONE
        order = sorted(held, key=lambda row: (held[row], row))
        due = sum(held[row] < time for row in order)
        assert heap.first_rows(states, time, least, most).tolist() == order[: min(max(due, least), most)]
        assert heap.first(states) == (order[0] if order else -1)
        assert len(heap) >= len(held)
    heap.replace(np.array([*held.values()], dtype=np.int64), np.array([*held], dtype=np.int64))
    assert len(heap) == len(held)
