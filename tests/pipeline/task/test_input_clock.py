"""Which timestamps count, against a slow search through all that came before."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.task.input_clock import JUDGES, InputClock
from tests.support.builders import join_settings
from tests.support.oracle import verdicts

SETTINGS = join_settings(window="2s", max_jump="1s")
JUMP, BEHIND = 1_000, 3_000
NOW = 1_700_000_000_000
MONTH = 30 * 86_400_000


def clock(time: int | None = None, ahead: int | None = None) -> InputClock:
    return InputClock(JUMP, BEHIND, time, ahead)


def judged(times: Sequence[int], of: InputClock | None = None, present: int | None = None) -> list[str]:
    found = (of or clock()).judge(times, present)
    names = [
        refused.fault.value if refused else "unusable" if time == NO_TIMESTAMP else "accepted"
        for refused, time in zip(found, times[: len(found)], strict=True)
    ]
    return names + ["waits"] * (len(times) - len(found))


near = st.integers(0, 20)
times = st.lists(
    st.sampled_from([NO_TIMESTAMP, 0, 0, 50_000, 50_999, 51_000, 51_001, 47_000, 46_999])
    | st.integers(0, 5_000)
    | st.integers(0, 100_000)
    | st.builds(lambda n: 50_000 + 90 * n, near),
    max_size=30,
)
runs = st.lists(st.tuples(times, st.sampled_from([1, 1, JUDGES - 1, JUDGES + 1])), max_size=4).map(
    lambda parts: [time for part, copies in parts for time in part[:2] * copies + part[2:]]
)


@given(times=times | runs, end=st.sampled_from([(None, "waits"), (0, "accepted"), (10**9, "future")]))
def test_verdicts_are_those_of_a_slow_search(times: list[int], end: tuple[int | None, str]) -> None:
    assert judged(times, present=end[0]) == verdicts(times, SETTINGS, end[1])


@given(times=times | runs)
def test_what_is_taken_over_at_once_is_what_would_be_accepted_one_by_one(times: list[int]) -> None:
    at_once, one_by_one = clock(), clock()
    for begin in range(0, len(times), 3):
        part = times[begin : begin + 3]
        plain = {*judged(part, one_by_one)} <= {"accepted", "unusable"}
        if not at_once.accept_all(np.array(part, dtype=np.int64)):
            return
        assert plain
        assert (at_once.time, at_once.ahead, at_once.behind) == (
            one_by_one.time,
            one_by_one.ahead,
            one_by_one.behind,
        )


@given(steps=st.lists(st.integers(0, JUMP), min_size=1, max_size=50), late=st.integers(0, BEHIND))
def test_what_is_no_jump_is_taken_over_at_once_however_long_it_takes(steps: list[int], late: int) -> None:
    given_times = [*accumulate(steps, initial=NOW)]
    given_times.insert(1, NOW - late)
    for found in (clock(), clock(NOW)):
        assert found.accept_all(np.array([NO_TIMESTAMP, *given_times, NO_TIMESTAMP]))
        assert found.time == max(given_times)


@pytest.mark.parametrize(
    ("given_times", "expected"),
    [
        ([NOW, 0, NOW + 1], "accepted past accepted"),
        ([0, NOW, NOW + 1, 0, NOW + 2], "accepted accepted accepted past accepted"),  # the first is wrong
        ([0, NOW, 0, NOW + 1, NOW + 2], "accepted accepted past accepted accepted"),
        ([NOW, 0, NOW + MONTH, 0, NOW + MONTH + 5], "accepted past accepted past accepted"),
        ([NOW, NOW + MONTH, NOW + 5], "accepted future accepted"),  # a wrong clock
        ([NOW, NOW + MONTH, NOW + MONTH, NOW + 5, NOW + 6], "accepted future future accepted accepted"),
        ([NOW, NOW + 2 * MONTH, NOW + MONTH, NOW + 1], "accepted future future accepted"),
        ([NOW + n * MONTH for n in range(6)], "accepted " * 6),
        ([NOW, NOW - BEHIND, NOW], "accepted accepted accepted"),
        ([NOW, NOW - BEHIND - 1, NOW], "accepted past accepted"),
        ([NOW, NOW - BEHIND, NOW - BEHIND - 1], "accepted accepted past"),  # the latest judges, not the last
    ],
)
def test_a_clock_that_is_wrong_costs_its_own_messages(given_times: list[int], expected: str) -> None:
    assert judged(given_times, present=0) == expected.split()


@pytest.mark.parametrize("offset", [-NOW, 12 * MONTH])
@pytest.mark.parametrize("burst", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_one_of_ten_devices_is_wrong_and_judges_no_other(offset: int, burst: int, seed: int) -> None:
    chance, given_times, wrong = random.Random(seed), [NOW], [False]
    while len(given_times) < 3_000:
        device = chance.random() < 0.1 / burst
        for _ in range(burst if device else 1):
            given_times.append(max(0, NOW + 10 * len(given_times) + offset * device))
            wrong.append(device)
    refused = "past" if offset < 0 else "future"
    assert judged(given_times, present=0) == [refused if each else "accepted" for each in wrong]


def test_half_of_the_judges_and_one_decide_at_once() -> None:
    assert judged([NOW, NOW + MONTH, *[NOW + MONTH] * (JUDGES // 2)])[:2] == ["accepted", "waits"]
    assert judged([NOW, NOW + MONTH, *[NOW + MONTH] * (JUDGES // 2 + 1)])[:2] == ["accepted", "accepted"]
    assert judged([NOW, NOW + MONTH, *[NOW] * (JUDGES // 2 + 1)])[:2] == ["accepted", "future"]


def test_a_clock_that_was_set_by_wrong_ones_goes_back_after_a_hundred() -> None:
    good = [NOW + n for n in range(JUDGES + 5)]
    wrong = [NOW + MONTH] * (JUDGES // 2 + 2)
    found = judged([NOW, *wrong, *good, *[0] * JUDGES])
    assert found == ["accepted"] * (1 + len(wrong)) + ["past"] * JUDGES + ["accepted"] * 5 + ["past"] * JUDGES


def test_each_accepted_message_makes_up_for_one_that_is_far_behind() -> None:
    found = InputClock(JUMP, BEHIND, NOW, behind=5)
    assert found.accept_all(np.array([NOW, NO_TIMESTAMP, NOW, NOW]))
    assert found.behind == 2
    found.accept(NOW)
    assert found.behind == 1


def test_a_jump_does_not_wait_for_ever_for_those_that_are_far_behind() -> None:
    assert judged([NOW, NOW + MONTH, *[0] * (JUDGES - 1)]) == ["accepted"] + ["waits"] * JUDGES
    assert judged([NOW, NOW + MONTH, *[0] * JUDGES]) == ["accepted", "future"] + ["past"] * JUDGES


@pytest.mark.parametrize(("ahead", "expected"), [(NOW + MONTH, "accepted"), (NOW + 2 * MONTH, "future")])
def test_at_its_end_a_jump_is_confirmed_by_the_one_that_was_refused_before(ahead: int, expected: str) -> None:
    assert judged([NOW + MONTH + 1], clock(NOW, ahead=ahead), present=NOW + 9 * MONTH) == [expected]


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (
            NOW // 1000,
            "1000 times as much would fit, as where seconds are read as milliseconds: look at time_unit",
        ),
        (NOW * 1000, "a thousandth of it would fit, as where microseconds are read as milliseconds"),
    ],
)
def test_seconds_and_microseconds_are_named(time: int, said: str) -> None:
    [_, refused, _] = clock().judge([NOW, time, NOW], present=0)
    assert refused is not None
    assert said in refused.reason


def test_another_time_is_not_said_to_be_of_another_unit() -> None:
    refused = clock().judge([NOW, 0, NOW + MONTH, NOW], present=0)[1:3]
    assert all(each is not None and "time_unit" not in each.reason for each in refused)
