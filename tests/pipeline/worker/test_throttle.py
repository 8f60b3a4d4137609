from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from pipeline.worker import throttle
from pipeline.worker.throttle import MINUTE, DeadLetterThrottle


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(throttle, "time", clock)
    return clock


def test_a_partition_is_paused_once_it_has_its_dead_letters_of_the_minute(clock: Clock) -> None:
    paused = DeadLetterThrottle(0, limit=10)
    paused.note(9)
    active = [paused.active]
    paused.note(4)
    active.append(paused.active)
    assert active == [False, True]
    assert paused.dead_letters == 13


def test_the_minute_begins_with_its_first_dead_letter_and_the_next_one_counts_anew(clock: Clock) -> None:
    paused = DeadLetterThrottle(0, limit=10)
    clock.now += 500
    paused.note(0)
    paused.note(5)
    clock.now += MINUTE - 1
    paused.note(5)
    active = [paused.active]
    clock.now += 1
    active.append(paused.active)
    assert active == [True, False]
    paused.note(3)
    assert paused.dead_letters == 3


def test_one_line_is_logged_each_time_the_limit_is_reached(clock: Clock) -> None:
    paused = DeadLetterThrottle(3, limit=10)
    with capture_logs() as logs:
        for _ in range(2):
            for _ in range(4):
                paused.note(5)
            clock.now += MINUTE
    assert [(line["partition"], line["dead_letters"], line["wait_s"]) for line in logs] == [(3, 10, 60.0)] * 2
