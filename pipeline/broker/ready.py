"""Wait until a broker answers."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console

from pipeline.broker.settings import VERSION
from pipeline.errors import BrokerError
from pipeline.kafka.liveness import Probe

REQUEST_TIMEOUT = 0.5
"""Seconds for the broker to answer one request."""


def wait_until_ready(bootstrap: str, check_alive: Callable[[], None], seconds: float = 90) -> None:
    """Return when the broker answers a metadata request with at least one node; show the wait on stderr.

    Parameters
    ----------
    bootstrap
        The address of the broker, ``host:port``.
    check_alive
        Called before every request; raises an error if the broker has ended.
    seconds
        The longest time to wait.

    Raises
    ------
    BrokerError
        The broker has not answered within the time.
    """
    probe = Probe(bootstrap)
    deadline = time.monotonic() + seconds
    with Console(stderr=True).status(f"Waiting for Apache Kafka {VERSION} ..."):
        while time.monotonic() < deadline:
            check_alive()
            if probe.answers(REQUEST_TIMEOUT):
                return
    raise BrokerError(f"the broker at {bootstrap} runs, but did not answer within {seconds:g} seconds")
