"""A fault that is to be alone waits until all is recovered from those before it; the others do not."""

from __future__ import annotations

import time
from typing import cast

import pytest

from tests.chaos.brokers import Brokers, ClusterFaults
from tests.chaos.deployment import Deployment
from tests.chaos.killer import PATIENCE, FaultInjector
from tests.chaos.schedule import Fault, FaultInjection


class Faults:
    """Strikes at no broker."""

    def recovered(self) -> bool:
        return True

    def strike(self, injection: FaultInjection, _: object) -> None:
        assert injection.fault is Fault.LEADER


class Watched:
    """A pipeline that recovers when it is told to."""

    def __init__(self, progress: float = 0.5, *, exhausted: bool = False) -> None:
        self.progress = progress
        self.exhausted = exhausted
        self.watch = self
        self.recovered = True
        self.strikes: list[bool] = []
        """Whether each came alone."""

    def strike(self, *, alone: bool) -> None:
        self.recovered = False
        self.strikes.append(alone)


def _injector(pipeline: Watched, *alone: bool) -> FaultInjector:
    injections = [FaultInjection(0.1, Fault.LEADER, 0, 0.0, alone=each) for each in alone]
    faults = cast(ClusterFaults, Faults())
    return FaultInjector(cast(Brokers, None), cast(Deployment, pipeline), injections, lambda _: None, faults)


def test_it_waits_for_recovery() -> None:
    pipeline = Watched()
    injector = _injector(pipeline, True, True)
    for _ in range(3):
        injector.step()
    assert pipeline.strikes == [True]

    pipeline.recovered = True
    injector.step()
    assert pipeline.strikes == [True, True]


def test_others_come_on_top() -> None:
    pipeline = Watched()
    injector = _injector(pipeline, True, False)
    injector.step()
    injector.step()
    assert pipeline.strikes == [True, False]


def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    pipeline = Watched()
    injector = _injector(pipeline, True, True)
    injector.step()
    injector.step()
    now[0] = PATIENCE + 1.0
    injector.step()
    assert pipeline.strikes == [True, False]


def test_nothing_is_struck_when_all_is_predicted() -> None:
    pipeline = Watched(1.0, exhausted=True)
    injector = _injector(pipeline, True, False)
    injector.step()
    assert injector.done
    assert not pipeline.strikes
