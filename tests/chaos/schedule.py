"""Which fault strikes whom, and when: all from the seed."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np

SESSION_TIMEOUT = 6.0
"""Seconds for which the group waits for a silent worker; brokers take no less."""


class Fault(Enum):
    """What is done to the pipeline."""

    KILL = "SIGKILL of a worker"
    ZOMBIE = "SIGSTOP of a worker, SIGCONT after its session"
    RESTART = "SIGTERM and a fresh start"
    BROKER = "SIGKILL of the broker"


class FaultInjection(NamedTuple):
    """One fault."""

    at: float
    """Share of the events that is predicted by then."""
    fault: Fault
    worker: int
    """Its number; of no meaning for the broker."""
    seconds: float
    """Until the victim is started again, or wakes up."""

    def __str__(self) -> str:
        whom = "" if self.fault is Fault.BROKER else f", worker {self.worker}"
        return f"at {self.at:6.2%}: {self.fault.value}{whom}, back after {self.seconds:.1f} s"


def plan(seed: int, minutes: float, workers: int) -> list[FaultInjection]:
    """Strikes for a run of so many minutes, in their order.

    They are tied to how far the pipeline has come rather than to a clock, so that the schedule is the same
    on every machine and every strike hits a pipeline that has work to do.
    """
    chance = np.random.default_rng([seed, 2])
    rates = {Fault.KILL: 4.0, Fault.ZOMBIE: 0.5, Fault.RESTART: 0.7, Fault.BROKER: 0.4}
    faults = [fault for fault, rate in rates.items() for _ in range(max(1, round(rate * minutes)))]
    moments = np.sort(chance.uniform(0.08, 0.9, len(faults)))
    return [
        FaultInjection(
            at=float(at),
            fault=faults[number],
            worker=int(chance.integers(workers)),
            seconds=float(chance.uniform(0.0, 3.0)) + SESSION_TIMEOUT * (faults[number] is Fault.ZOMBIE),
        )
        for at, number in zip(moments, chance.permutation(len(faults)).tolist(), strict=True)
    ]
