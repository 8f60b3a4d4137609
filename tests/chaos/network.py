"""The network between workers and brokers: a proxy for each worker and broker, which can fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tests.chaos.schedule import Fault
from tests.integration.proxy import Proxy
from tests.support.cluster import Cluster


class Network:
    """All proxies, which end with the `with` block.

    Each worker has a listener of its own on each broker. What the broker advertises there is the proxy, so a
    worker that is given the proxies' addresses is never told of another way.

    Parameters
    ----------
    workers
        How many workers.
    brokers
        The numbers of the brokers.
    """

    def __init__(self, workers: int, brokers: Iterable[int]) -> None:
        self._brokers = list(brokers)
        self._workers = range(workers)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._proxies = {
            (worker, broker): self._stack.enter_context(Proxy())
            for worker in self._workers
            for broker in self._brokers
        }
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def advertised(self) -> Mapping[str, Mapping[int, int]]:
        """The proxies' ports by listener and broker."""
        return {
            self.listener(worker): {broker: self._proxies[worker, broker].port for broker in self._brokers}
            for worker in self._workers
        }

    def listener(self, worker: int) -> str:
        """Return the name of a worker's listeners."""
        return f"WORKER_{worker}"

    def lead_to(self, cluster: Cluster) -> None:
        """Let the proxies connect to the brokers of a cluster that advertises them."""
        for (worker, broker), proxy in self._proxies.items():
            proxy.target = cluster.port(broker, self.listener(worker))

    def fail(self, fault: Fault, workers: Iterable[int], brokers: Iterable[int]) -> None:
        """Let all connections between these workers and these brokers fail until `heal`."""
        sides = [(worker, broker) for worker in workers for broker in brokers]
        for side in sides:
            if fault is Fault.CUT:
                self._proxies[side].cut()
            else:
                self._proxies[side].silence()

    def heal(self) -> None:
        """Let everything pass again."""
        for proxy in self._proxies.values():
            proxy.heal()
