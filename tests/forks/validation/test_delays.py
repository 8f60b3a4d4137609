from __future__ import annotations

import math
from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import stream

from forks.validation import Event, simulate_qa, without_delay

# Few different times and delays, so that there are many ties; times also go backwards.
times = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5)), max_size=40)


def question_order(plays: list[tuple[float, float]]) -> list[tuple[int, bool]]:
    events = (Event(None, 1.0, moment, delay) for moment, delay in plays)
    return [(step.number, step.is_answer) for step in simulate_qa(events)]


@given(times)
def test_the_order_is_that_of_rivers_simulate_qa(plays: list[tuple[float, float]]) -> None:
    dataset: list[tuple[dict[Hashable, float], int]]
    dataset = [({"moment": moment, "delay": delay}, 1) for moment, delay in plays]
    simulated = stream.simulate_qa(dataset, moment="moment", delay="delay")
    assert question_order(plays) == [(number, answer is not None) for number, _, answer in simulated]


@given(st.integers(0, 10))
def test_so_it_is_without_times(count: int) -> None:
    dataset: list[tuple[dict[Hashable, int], int]] = [({"number": number}, 1) for number in range(count)]
    simulated = stream.simulate_qa(dataset, moment=None, delay=None)
    found = simulate_qa(without_delay([[0.0]] * count, [1.0] * count))
    assert [(step.number, step.is_answer) for step in found] == [
        (number, answer is not None) for number, _, answer in simulated
    ]


def test_a_label_that_never_becomes_known_comes_when_the_stream_has_ended() -> None:
    assert question_order([(0, math.inf), (10**9, 0)]) == [(0, False), (1, False), (1, True), (0, True)]


@pytest.mark.parametrize("event", [(0, -1), (0, math.nan), (math.nan, 0), (math.inf, 0)])
def test_impossible_times_are_refused_by_the_events_number(event: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="event 1: moment must be finite and delay >= 0"):
        question_order([(0, 0), event])


def test_each_row_needs_a_label() -> None:
    with pytest.raises(ValueError, match="each of the 2 rows of X, not 1"):
        next(without_delay([[0.0], [1.0]], [1]))
