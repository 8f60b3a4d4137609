from __future__ import annotations

from pkgutil import resolve_name

import pytest

from bench.profile import STAGES
from bench.stage_timer import Seconds, StageTimer


class Clocks:
    """Two clocks that are set by hand."""

    def __init__(self) -> None:
        self.clock = self.processor = 0.0

    def __call__(self) -> tuple[float, float]:
        return self.clock, self.processor

    def go_on(self, clock: float, processor: float) -> None:
        self.clock += clock
        self.processor += processor


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def test_what_is_called_within_a_stage_counts_there_alone(clocks: Clocks) -> None:
    timer = StageTimer(clocks)
    inner = timer.timed("inner", clocks.go_on)
    clocks.go_on(1.0, 0.5)
    with timer.stage("outer"):
        clocks.go_on(2.0, 1.0)
        inner(4.0, 0.0)
        clocks.go_on(8.0, 2.0)
    inner(processor=8.0, clock=16.0)
    assert timer.totals() == {
        "rest": Seconds(1.0, 0.5),
        "outer": Seconds(10.0, 3.0),
        "inner": Seconds(20.0, 8.0),
    }


def test_a_stage_ends_with_an_error_too(clocks: Clocks) -> None:
    timer = StageTimer(clocks)
    with pytest.raises(ZeroDivisionError), timer.stage("outer"):
        clocks.go_on(1 / 0, 0.0)
    clocks.go_on(1.0, 1.0)
    assert timer.totals()["rest"] == Seconds(1.0, 1.0)


def test_what_was_before_a_restart_does_not_count(clocks: Clocks) -> None:
    timer = StageTimer(clocks)
    with timer.stage("outer"):
        clocks.go_on(1.0, 1.0)
        timer.restart()
        clocks.go_on(2.0, 0.5)
    assert timer.totals() == {"outer": Seconds(2.0, 0.5), "rest": Seconds()}


@pytest.mark.parametrize("function", STAGES.values())
def test_what_is_timed_is_there(function: str) -> None:
    assert callable(resolve_name(function))
