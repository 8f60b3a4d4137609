from __future__ import annotations

from bench.delays import Delay, Percentiles, split_near


def test_percentiles_are_of_milliseconds() -> None:
    delays = [Delay(sent=0.0, milliseconds=float(n)) for n in range(101)]
    assert Percentiles.of(delays) == Percentiles(p50_ms=50.0, p99_ms=99.0, max_ms=100.0)


def test_an_event_is_near_a_moment_that_comes_after_it() -> None:
    delays = [Delay(sent, 1.0) for sent in (9.0, 9.5, 10.0, 10.5, 19.5)]
    near, others = split_near(delays, moments=[10.0, 20.0], seconds=0.5)
    assert [delay.sent for delay in near] == [9.5, 10.0, 19.5]
    assert [delay.sent for delay in others] == [9.0, 10.5]
