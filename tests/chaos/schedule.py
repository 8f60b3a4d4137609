"""Which fault strikes whom, and when: all from the seed."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np

SESSION_TIMEOUT = 6.0
"""Seconds for which the group waits for a silent worker; brokers take no less."""
CLUSTER_SESSION_TIMEOUT = 20.0
"""The same on a cluster: longer than the failover of a broker, as by default."""


class Fault(Enum):
    """What is done to the pipeline."""

    KILL = "SIGKILL of a worker"
    ZOMBIE = "SIGSTOP of a worker, SIGCONT after its session"
    RESTART = "SIGTERM and a fresh start"
    BROKER = "SIGKILL of the broker"
    REGISTRY = "SIGKILL of the schema registry"
    LEADER = "SIGKILL of a broker that leads a partition"
    COORDINATOR = "SIGKILL of the broker that coordinates a worker's transactions"
    GROUP = "SIGKILL of the broker that coordinates the group"
    TWO = "SIGKILL of two of three brokers"
    ROLLING = "a restart of all brokers, one after another"
    SUSPENSION = "SIGSTOP of a broker, SIGCONT after the others have replaced it"
    CUT = "reset of connections between workers and brokers, new ones refused"
    SILENCE = "silence between workers and brokers, without a reset"


WORKER_RATES = {Fault.KILL: 4.0, Fault.ZOMBIE: 0.5, Fault.RESTART: 0.7}
"""Faults of workers in a minute."""
CLUSTER_WORKER_RATES = {Fault.KILL: 0.8, Fault.ZOMBIE: 0.2, Fault.RESTART: 0.2}
"""The same on a cluster, where recovery takes longer: a session there outlasts the failover of a broker."""
BROKER_RATES = {Fault.BROKER: 0.4}
"""The same of a single broker."""
REGISTRY_RATES = {Fault.REGISTRY: 1.0}
"""The same of the schema registry, where inputs have schemas."""
CLUSTER_RATES = {
    Fault.LEADER: 0.3,
    Fault.COORDINATOR: 0.4,
    Fault.GROUP: 0.3,
    Fault.TWO: 0.15,
    Fault.ROLLING: 0.15,
    Fault.SUSPENSION: 0.2,
    Fault.CUT: 0.25,
    Fault.SILENCE: 0.15,
}
"""The same of three brokers and of the network to them, which leave time to recover in between."""
ALONE = 0.6
"""Share of the faults on a cluster that wait until all is recovered from those before them."""
ALWAYS_ALONE = {Fault.LEADER, Fault.COORDINATOR, Fault.GROUP}
"""Faults that all wait for it: the deaths of single brokers, whose recovery has a limit to keep."""
NETWORK_FAULTS = {Fault.CUT, Fault.SILENCE}
"""Those that part workers from brokers, while all processes live and the brokers reach each other."""
BROKERS = (1, 2, 3)
"""The numbers of the brokers of the cluster."""
REPLACED = 10.0
"""Seconds after which a silent broker of the cluster has been replaced."""
SILENT = 25.0
"""Seconds of a silence, at least: brokers have taken back the open transactions, which last 15 seconds."""
REGISTRY_AWAY = 3.0, 15.0
"""Seconds until a registry that was killed is started again, at least and at most."""
LONGEST_SILENCE = 70.0
"""The same, at most: clients wait for an answer for no longer than 60 seconds."""


class FaultInjection(NamedTuple):
    """One fault."""

    at: float
    """Share of the events that is predicted by then."""
    fault: Fault
    worker: int
    """Its number. For a broker of the cluster, it chooses the victim."""
    seconds: float
    """Until the victim is started again, or wakes up, or until the network heals."""
    sides: tuple[tuple[int, ...], tuple[int, ...]] = (), ()
    """Workers and brokers between which the network fails, by number."""
    alone: bool = False
    """Whether it waits for recovery from the faults before it, so that its own recovery can be measured."""

    def __str__(self) -> str:
        whom = f", worker {self.worker}" if self.fault in WORKER_RATES else ""
        if self.fault in NETWORK_FAULTS:
            workers, brokers = (" ".join(map(str, side)) for side in self.sides)
            whom = f", workers {workers}, brokers {brokers}"
        alone = ", alone" if self.alone else ""
        return f"at {self.at:6.2%}: {self.fault.value}{whom}{alone}, back after {self.seconds:.1f} s"


def plan(
    seed: int, minutes: float, workers: int, cluster: bool = False, *, registry: bool = False
) -> list[FaultInjection]:
    """Strikes for a run of so many minutes, in their order; on a cluster, of its brokers.

    With a schema registry, strikes at it are among them.

    They are tied to how far the pipeline has come rather than to a clock, so that the schedule is the same
    on every machine and every strike hits a pipeline that has work to do.
    """
    chance = np.random.default_rng([seed, 2])
    rates = CLUSTER_WORKER_RATES | CLUSTER_RATES if cluster else WORKER_RATES | BROKER_RATES
    rates = rates | REGISTRY_RATES if registry else rates
    faults = [fault for fault, rate in rates.items() for _ in range(max(1, round(rate * minutes)))]
    moments = np.sort(chance.uniform(0.08, 0.9, len(faults)))
    return [
        FaultInjection(
            at=float(at),
            fault=faults[number],
            worker=int(chance.integers(workers)),
            seconds=_absence(faults[number], chance, session_timeout(cluster)),
            sides=_sides(workers, chance) if faults[number] in NETWORK_FAULTS else ((), ()),
            alone=cluster and bool(chance.uniform() < ALONE or faults[number] in ALWAYS_ALONE),
        )
        for at, number in zip(moments, chance.permutation(len(faults)).tolist(), strict=True)
    ]


def session_timeout(cluster: bool) -> float:
    """Seconds for which the group waits for a silent worker."""
    return CLUSTER_SESSION_TIMEOUT if cluster else SESSION_TIMEOUT


def _absence(fault: Fault, chance: np.random.Generator, session: float) -> float:
    """Seconds for which a victim is away."""
    if fault is Fault.SILENCE:
        return float(chance.uniform(SILENT, LONGEST_SILENCE))
    if fault is Fault.REGISTRY:
        return float(chance.uniform(*REGISTRY_AWAY))
    least = 0.0
    if fault in {Fault.ZOMBIE, Fault.CUT}:
        least = session
    elif fault in CLUSTER_RATES:
        least = REPLACED
    return float(chance.uniform(0.0, 3.0)) + least


def _sides(workers: int, chance: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """One worker and all brokers, all workers and one broker, or one and one."""
    worker, broker = (int(chance.integers(workers)),), (int(chance.choice(BROKERS)),)
    sides = [(worker, BROKERS), (tuple(range(workers)), broker), (worker, broker)]
    return sides[int(chance.integers(len(sides)))]
