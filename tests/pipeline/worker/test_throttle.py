from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from pipeline.worker import throttle as storm
from pipeline.worker.throttle import DeadLetterThrottle


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(storm, "time", clock)
    return clock


def test_a_partition_waits_once_it_has_its_dead_letters_of_the_minute(clock: Clock) -> None:
    throttle = DeadLetterThrottle(limit=10)
    throttle.note(0, 9)
    assert not throttle.is_throttled(0)
    throttle.note(0, 4)
    assert throttle.is_throttled(0)
    assert not throttle.is_throttled(1)
    assert (throttle.dead_letters(0), throttle.dead_letters(1)) == (13, 0)


def test_the_minute_begins_with_its_first_dead_letter_and_the_next_one_counts_anew(clock: Clock) -> None:
    throttle = DeadLetterThrottle(limit=10)
    clock.now += 500
    throttle.note(0, 0)
    throttle.note(0, 5)
    clock.now += 59
    throttle.note(0, 5)
    held = [throttle.is_throttled(0)]
    clock.now += 1
    held.append(throttle.is_throttled(0))
    assert held == [True, False]
    throttle.note(0, 3)
    assert throttle.dead_letters(0) == 3


def test_one_line_is_logged_each_time_the_limit_is_reached(clock: Clock) -> None:
    throttle = DeadLetterThrottle(limit=10)
    with capture_logs() as logs:
        for _ in range(2):
            for _ in range(4):
                throttle.note(3, 5)
            clock.now += 60
    assert [(line["partition"], line["dead_letters"], line["wait_s"]) for line in logs] == [(3, 10, 60.0)] * 2
