"""Three brokers, and the faults that strike them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Self, TypeAlias

from confluent_kafka import KafkaException

from tests.chaos.deployment import Deployment
from tests.chaos.schedule import Fault, FaultInjection
from tests.integration.harness import Pipeline
from tests.support.cluster import Cluster, running_cluster

After: TypeAlias = Callable[[float, Callable[[], None]], None]
"""Does something so many seconds later."""
PAUSE = 5.0
"""Seconds between the restarts of two brokers, at least."""


class Brokers:
    """A cluster, which ends with the `with` block."""

    def __init__(self) -> None:
        self.replication = 3
        self.running = True
        """There is always a broker that workers may turn to, if not always enough of them."""
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.cluster: Cluster = self._stack.enter_context(running_cluster())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return self.cluster.bootstrap

    def faults(self, pipeline: Pipeline, deployment: Deployment) -> ClusterFaults:
        """Return what strikes at the brokers of a pipeline."""
        return ClusterFaults(self.cluster, pipeline, deployment)


class ClusterFaults:
    """Strikes at brokers, one fault after the other.

    Kafka promises nothing if the only replicas in sync are lost, so each strike waits until all are in sync.

    Parameters
    ----------
    cluster
        Whose brokers are struck.
    pipeline
        Runs on it, and tells who leads and coordinates what.
    deployment
        Told of each strike, to measure recovery.
    """

    def __init__(self, cluster: Cluster, pipeline: Pipeline, deployment: Deployment) -> None:
        self._cluster = cluster
        self._pipeline = pipeline
        self._deployment = deployment
        self._busy = False
        """Whether victims of the last strike are still away."""
        self._asked = 0.0

    def recovered(self) -> bool:
        """Return whether all replicas are in sync, which is asked once a second."""
        if self._busy or time.monotonic() - self._asked < 1.0:
            return False
        self._asked = time.monotonic()
        return self._in_sync()

    def strike(self, injection: FaultInjection, after: After) -> None:
        """Strike, and arrange what happens later."""
        self._busy = True
        if injection.fault is Fault.ROLLING:
            self._restart(self._cluster.brokers, after)
            return
        victims = self._victims(injection)
        self._note(injection.fault)
        if injection.fault is Fault.CUT:
            [victim] = victims
            self._cluster.pause(victim)
            after(injection.seconds, partial(self._cluster.resume, victim))
        else:
            self._cluster.kill(*victims)
            for number, victim in enumerate(victims):
                after(injection.seconds + PAUSE * number, partial(self._cluster.start, victim, wait=False))
        after(injection.seconds + PAUSE * len(victims), self._end)

    def _victims(self, injection: FaultInjection) -> list[int]:
        cluster, pipeline = self._cluster, self._pipeline
        match injection.fault:
            case Fault.COORDINATOR:
                kafka = pipeline.kafka
                return [cluster.transaction_coordinator(f"{kafka.prefix}{kafka.group}-worker-0")]
            case Fault.GROUP:
                return [cluster.coordinator(pipeline.kafka.group)]
            case Fault.TWO:
                spared = cluster.brokers[injection.worker % len(cluster.brokers)]
                return [broker for broker in cluster.brokers if broker != spared]
            case _:
                return [cluster.leader(pipeline.topics.predictions, injection.worker % pipeline.partitions)]

    def _restart(self, brokers: list[int], after: After) -> None:
        """Restart brokers one after another, each when all are in sync."""
        if not brokers:
            self._end()
            return
        first, *others = brokers
        self._note(Fault.ROLLING)
        self._cluster.stop(first, wait=False)

        def start_again() -> None:
            if self._cluster.running(first):
                after(0.1, start_again)
            else:
                self._cluster.start(first, wait=False)
                after(PAUSE, go_on)

        def go_on() -> None:
            if self._in_sync():
                self._restart(others, after)
            else:
                after(1.0, go_on)

        start_again()

    def _in_sync(self) -> bool:
        try:
            return self._cluster.in_sync()
        except KafkaException:
            return False

    def _end(self) -> None:
        self._busy = False

    def _note(self, fault: Fault) -> None:
        self._deployment.watch.wait_for_news(fault, time.monotonic())
