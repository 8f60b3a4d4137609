"""The compiled merge beside one that takes a message after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.join.merge import BEFORE_ALL, merge

WINDOW = 50
times = st.lists(st.integers(0, 30) | st.integers(0, 200), max_size=12)


def one_by_one(
    shown: list[int], told: list[int], more: tuple[bool, bool], quiet: int, most: int
) -> tuple[list[int], int]:
    """The turns of messages, i of interaction i and ~i of label i, and the latest time among them."""
    turns: list[int] = []
    latest, n, m = BEFORE_ALL, 0, 0
    while len(turns) < most:
        ahead = [(told[m], 0)] if m < len(told) else []
        ahead += [(shown[n], 1)] if n < len(shown) else []
        if (n == len(shown) and more[0]) or (m == len(told) and more[1]) or not ahead:
            break
        time, interaction = min(ahead)  # at the same time, labels go first
        if max(latest, time) > quiet:
            break
        latest = max(latest, time)
        if interaction:
            turns.append(n)
            quiet = min(quiet, time + WINDOW)
            n += 1
        else:
            turns.append(~m)
            m += 1
    return turns, latest


@given(
    shown=times,
    told=times,
    more=st.tuples(st.booleans(), st.booleans()),
    quiet=st.integers(0, 300),
    most=st.integers(0, 30),
)
def test_messages_are_merged_as_one_by_one(
    shown: list[int], told: list[int], more: tuple[bool, bool], quiet: int, most: int
) -> None:
    labels_before = np.empty(len(shown), dtype=np.int64)
    interactions_before = np.empty(len(told), dtype=np.int64)
    columns = np.array(shown, dtype=np.int64), np.array(told, dtype=np.int64)
    n, m, latest = merge(*columns, *more, WINDOW, quiet, most, labels_before, interactions_before)
    turns, wanted = one_by_one(shown, told, more, quiet, most)
    assert (n + m, latest) == (len(turns), wanted)
    places = {turn: place for place, turn in enumerate(turns)}
    assert labels_before[:n].tolist() == [places[number] - number for number in range(n)]
    assert interactions_before[:m].tolist() == [places[~number] - number for number in range(m)]
