"""The compiled merge beside one that takes a message after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.task.merging import NO_TIMESTAMP, merge

times = st.lists(st.integers(0, 30) | st.integers(0, 200), max_size=12)


def one_by_one(
    interaction_times: list[int],
    label_times: list[int],
    more: tuple[bool, bool],
    until: int,
    max_messages: int,
) -> tuple[list[int], int]:
    """Return the order of messages, i of interaction i and ~i of label i, and the latest time among them."""
    order: list[int] = []
    latest, n, m = NO_TIMESTAMP, 0, 0
    while len(order) < max_messages:
        ahead = [(label_times[m], 0)] if m < len(label_times) else []
        ahead += [(interaction_times[n], 1)] if n < len(interaction_times) else []
        if (n == len(interaction_times) and more[0]) or (m == len(label_times) and more[1]) or not ahead:
            break
        time, interaction = min(ahead)  # at the same time, labels go first
        if time > until:
            break
        latest = max(latest, time)
        if interaction:
            order.append(n)
            n += 1
        else:
            order.append(~m)
            m += 1
    return order, latest


@given(
    interaction_times=times,
    label_times=times,
    more=st.tuples(st.booleans(), st.booleans()),
    until=st.integers(0, 300),
    max_messages=st.integers(0, 30),
)
def test_messages_are_merged_as_one_by_one(
    interaction_times: list[int],
    label_times: list[int],
    more: tuple[bool, bool],
    until: int,
    max_messages: int,
) -> None:
    labels_before = np.empty(len(interaction_times), dtype=np.int64)
    interactions_before = np.empty(len(label_times), dtype=np.int64)
    columns = np.array(interaction_times, dtype=np.int64), np.array(label_times, dtype=np.int64)
    n, m, latest = merge(*columns, *more, until, max_messages, labels_before, interactions_before)
    order, wanted = one_by_one(interaction_times, label_times, more, until, max_messages)
    assert (n + m, latest) == (len(order), wanted)
    positions = {message: position for position, message in enumerate(order)}
    assert labels_before[:n].tolist() == [positions[number] - number for number in range(n)]
    assert interactions_before[:m].tolist() == [positions[~number] - number for number in range(m)]
