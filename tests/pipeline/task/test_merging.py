"""The compiled merge beside one that takes a message after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.task.merging import merge

times = st.lists(st.integers(-1, 30) | st.integers(0, 200), max_size=12)


def one_by_one(
    interaction_times: list[int], label_times: list[int], more: tuple[bool, bool], max_messages: int
) -> list[tuple[int, int, int]]:
    """Return whether it is a label, place and time of each message, in their order."""
    order: list[tuple[int, int, int]] = []
    n = m = 0
    while len(order) < max_messages:
        ahead = [(label_times[m], 0)] if m < len(label_times) else []
        ahead += [(interaction_times[n], 1)] if n < len(interaction_times) else []
        if (n == len(interaction_times) and more[0]) or (m == len(label_times) and more[1]) or not ahead:
            break
        time, interaction = min(ahead)  # at the same time, labels go first
        order.append((0, n, time) if interaction else (1, m, time))
        n, m = n + interaction, m + 1 - interaction
    return order


@given(
    interaction_times=times,
    label_times=times,
    more=st.tuples(st.booleans(), st.booleans()),
    max_messages=st.integers(0, 30),
)
def test_messages_are_merged_as_one_by_one(
    interaction_times: list[int], label_times: list[int], more: tuple[bool, bool], max_messages: int
) -> None:
    kinds = np.empty(max_messages, dtype=np.uint8)
    rows, merged_times = np.empty((2, max_messages), dtype=np.int64)
    columns = np.array(interaction_times, dtype=np.int64), np.array(label_times, dtype=np.int64)
    n, m = merge(*columns, *more, kinds, rows, merged_times)
    found = list(zip(kinds.tolist(), rows.tolist(), merged_times.tolist(), strict=True))[: n + m]
    assert found == one_by_one(interaction_times, label_times, more, max_messages)
    assert m == sum(kind for kind, _, _ in found)
