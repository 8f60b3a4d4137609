"""Three brokers, and the faults that strike them and the network to them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Self, TypeAlias

from confluent_kafka import KafkaException

from tests.chaos.deployment import Deployment
from tests.chaos.network import Network
from tests.chaos.schedule import BROKERS, NETWORK_FAULTS, Fault, FaultInjection
from tests.integration.harness import Pipeline
from tests.support.cluster import Cluster, running_cluster

After: TypeAlias = Callable[[float, Callable[[], None]], None]
"""Does something so many seconds later."""
PAUSE = 5.0
"""Seconds between the restarts of two brokers, at least."""


class Brokers:
    """A cluster and the network to it, which end with the `with` block.

    Parameters
    ----------
    workers
        How many workers it is for.
    """

    def __init__(self, workers: int) -> None:
        self.replication = 3
        self.running = True
        """There is always a broker that workers may turn to, if not always enough of them."""
        self._network = Network(workers, BROKERS)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._network)
            cluster = running_cluster(len(BROKERS), proxied=self._network.advertised)
            self.cluster: Cluster = stack.enter_context(cluster)
            self._stack = stack.pop_all()
        self._network.lead_to(self.cluster)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, past the proxies."""
        return self.cluster.bootstrap

    def bootstrap_of(self, worker: int) -> str:
        """Return the addresses at which a worker reaches all brokers: its proxies."""
        return self.cluster.bootstrap_of(self._network.listener(worker))

    def faults(self, pipeline: Pipeline, deployment: Deployment) -> ClusterFaults:
        """Return what strikes at the brokers of a pipeline."""
        return ClusterFaults(self.cluster, self._network, pipeline, deployment)


class ClusterFaults:
    """Strikes at brokers and at the network to them, one fault after the other.

    Kafka promises nothing if the only replicas in sync are lost, so each strike waits until all are in sync.

    Parameters
    ----------
    cluster
        Whose brokers are struck.
    network
        What the workers reach them through.
    pipeline
        Runs on it, and tells who leads and coordinates what.
    deployment
        Told of each strike, to measure recovery.
    """

    def __init__(
        self, cluster: Cluster, network: Network, pipeline: Pipeline, deployment: Deployment
    ) -> None:
        self._cluster = cluster
        self._network = network
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
        if injection.fault in NETWORK_FAULTS:
            self._network.fail(injection.fault, *injection.sides)
            after(injection.seconds, partial(self._heal, injection.fault))
            after(injection.seconds + PAUSE, self._end)
            return
        victims = self._victims(injection)
        self._note(injection.fault)
        if injection.fault is Fault.SUSPENSION:
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

    def _heal(self, fault: Fault) -> None:
        """Heal the network; recovery counts from then on."""
        self._network.heal()
        self._note(fault)

    def _in_sync(self) -> bool:
        try:
            return self._cluster.in_sync()
        except KafkaException:
            return False

    def _end(self) -> None:
        self._busy = False

    def _note(self, fault: Fault) -> None:
        self._deployment.watch.wait_for_news(fault, time.monotonic())
