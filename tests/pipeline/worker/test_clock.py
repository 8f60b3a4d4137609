from __future__ import annotations

from types import SimpleNamespace

import pytest

from pipeline.worker import clock
from pipeline.worker.clock import PUNCTUATION_INTERVAL, IdleAdvance

LAG = 500


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The monotonic clock, in seconds."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def test_stream_time_moves_with_the_clock_from_where_the_idle_period_began(now: SimpleNamespace) -> None:
    idle = IdleAdvance(LAG)
    assert idle.stream_time(70_000, busy=False) == 70_000 - LAG
    now.seconds += 3.5
    assert idle.stream_time(70_100, busy=False) == 73_500 - LAG


def test_stream_time_moves_at_intervals_unless_there_is_more_to_do_at_once(now: SimpleNamespace) -> None:
    idle = IdleAdvance(LAG)
    idle.stream_time(70_000, busy=False)
    now.seconds += PUNCTUATION_INTERVAL / 2
    assert idle.stream_time(70_000, busy=False) is None
    assert idle.stream_time(70_000, busy=True) == 70_500 - LAG
    now.seconds += PUNCTUATION_INTERVAL / 2
    assert idle.stream_time(70_000, busy=False) is None
    now.seconds += PUNCTUATION_INTERVAL / 2
    assert idle.stream_time(70_000, busy=False) == 71_500 - LAG


def test_an_idle_period_begins_anew_after_a_message(now: SimpleNamespace) -> None:
    idle = IdleAdvance(LAG)
    idle.stream_time(70_000, busy=False)
    now.seconds += 10
    idle.reset()
    assert idle.stream_time(90_000, busy=False) == 90_000 - LAG
