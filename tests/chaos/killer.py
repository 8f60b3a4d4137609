"""Carries out the strikes of a schedule."""

from __future__ import annotations

import heapq
import signal
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count

from tests.chaos.broker import Broker
from tests.chaos.brokers import Brokers, ClusterFaults
from tests.chaos.deployment import Deployment
from tests.chaos.schedule import CLUSTER_RATES, Fault, FaultInjection
from tests.chaos.worker_pool import Worker
from tests.support.apicurio import Apicurio

PATIENCE = 90.0
"""Seconds for which a fault waits for recovery from those before it."""


class FaultInjector:
    """Strikes when the pipeline has come far enough, in the order of the schedule.

    Parameters
    ----------
    broker, stage
        The victims.
    strikes
        The schedule.
    say
        Told of each strike.
    """

    def __init__(
        self,
        broker: Broker | Brokers,
        deployment: Deployment,
        injections: list[FaultInjection],
        say: Callable[[str], None],
        cluster_faults: ClusterFaults | None = None,
        *,
        registry: Apicurio | None = None,
    ) -> None:
        self._registry = registry
        self.struck: Counter[Fault] = Counter()
        self._broker = broker
        self._deployment = deployment
        self._injections = injections[::-1]
        self._say = say
        self._cluster_faults = cluster_faults
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._due_since: float | None = None

    @property
    def done(self) -> bool:
        """Whether all is struck, but for brokers that have nothing left to do, and everybody is back."""
        return not (self._injections or self._later)

    def step(self) -> None:
        """Do what is due."""
        while self._later and self._later[0][0] <= time.monotonic():
            heapq.heappop(self._later)[-1]()
        if self._injections and self._cluster_faults is not None and self._deployment.exhausted:
            self._say(f"all is predicted before {len(self._injections)} of the faults were due")
            self._injections.clear()  # each would wait for a recovery that nothing can show any more
        if not self._injections or self._deployment.progress < self._injections[-1].at:
            return
        if self._due_since is None:
            self._due_since = time.monotonic()
        injection, calm = self._injections[-1], not self._later and self._deployment.watch.recovered
        if injection.alone and not calm and time.monotonic() - self._due_since < PATIENCE:
            return
        if self._can(injection):
            self._injections.pop()
            self._due_since = None
            self._say(str(injection))
            self.struck[injection.fault] += 1
            self._deployment.watch.strike(alone=calm)
            self._inject(injection)

    def _can(self, injection: FaultInjection) -> bool:
        """Whether there is something to strike at: a worker with partitions, or a broker."""
        if injection.fault is Fault.BROKER:
            return self._broker.running
        if injection.fault is Fault.REGISTRY:
            return self._registry is not None and self._registry.running
        if self._cluster_faults is not None and injection.fault in CLUSTER_RATES:
            return self._cluster_faults.recovered()
        worker = self._deployment.worker_pool.workers.get(injection.worker)
        return worker is not None and bool(worker.partitions) and self._broker.running

    def _inject(self, injection: FaultInjection) -> None:
        struck = time.monotonic()
        match injection.fault:
            case Fault.BROKER:
                assert isinstance(self._broker, Broker)
                self._broker.kill()
                self._after(injection.seconds, lambda: self._revive_broker(struck))
            case Fault.REGISTRY:
                assert self._registry is not None
                self._registry.kill()
                self._after(injection.seconds, partial(self._registry.start, wait=False))
            case Fault.KILL:
                worker = self._deployment.worker_pool.remove(injection.worker)
                worker.process.kill()
                self._deployment.watch.wait_for_recovery(injection.fault, struck, worker.partitions)
                self._after(injection.seconds, lambda: self._deployment.worker_pool.start(injection.worker))
            case Fault.RESTART:
                worker = self._deployment.worker_pool.remove(injection.worker)
                held = worker.partitions
                worker.process.send_signal(signal.SIGTERM)
                self._after(0.0, lambda: self._restart(injection, worker, held, struck))
            case Fault.ZOMBIE:
                self._stop(injection, struck)
            case _:
                assert self._cluster_faults is not None
                self._cluster_faults.strike(injection, self._after)

    def _stop(self, injection: FaultInjection, struck: float) -> None:
        """Put a worker to sleep; if it has a name, another one takes its place under that name."""
        worker_pool = self._deployment.worker_pool
        worker = worker_pool.workers[injection.worker]
        held = worker.partitions
        worker.stop()
        if worker_pool.name(injection.worker):
            worker_pool.replace(injection.worker)
        else:
            worker_pool.remove(injection.worker)
        self._deployment.watch.wait_for_recovery(injection.fault, struck, held)
        self._after(injection.seconds, lambda: self._wake(injection, worker))

    def _wake(self, injection: FaultInjection, worker: Worker) -> None:
        worker.wake()
        if not self._deployment.worker_pool.name(injection.worker):
            self._deployment.worker_pool.workers[injection.worker] = worker

    def _restart(self, injection: FaultInjection, worker: Worker, held: set[int], struck: float) -> None:
        """Start a worker afresh as soon as the one that was told to stop has."""
        if worker.process.poll() is None or not self._broker.running:
            self._after(0.1, lambda: self._restart(injection, worker, held, struck))
            return
        self._deployment.worker_pool.expect(worker, 0, "a worker that was told to stop")
        self._deployment.watch.wait_for_recovery(injection.fault, struck, held)
        self._after(injection.seconds, lambda: self._deployment.worker_pool.start(injection.worker))

    def _revive_broker(self, struck: float) -> None:
        assert isinstance(self._broker, Broker)
        self._broker.start()
        self._deployment.watch.wait_for_recovery(Fault.BROKER, struck)

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._numbers), action))
