"""Wait until a broker answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from rich.console import Console

from pipeline.broker.settings import VERSION
from pipeline.errors import BrokerError

NOT_READY: Final = {KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN}


def wait_until_ready(bootstrap: str, check_alive: Callable[[], None], seconds: float = 90) -> None:
    """Return when the broker answers a metadata request with at least one node; show the wait on stderr.

    Parameters
    ----------
    bootstrap : str
        The address of the broker, ``host:port``.
    check_alive : callable
        Called before every request; raises an error if the broker has ended.
    seconds : float
        The longest time to wait.

    Raises
    ------
    BrokerError
        The broker has not answered within the time.
    """
    client = AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "reconnect.backoff.max.ms": 200,  # with the default of 10 s a ready broker is noticed late
            "log_level": 0,  # no lines about refused connections: they are expected here
        }
    )
    deadline = time.monotonic() + seconds
    with Console(stderr=True).status(f"Waiting for Apache Kafka {VERSION} ..."):
        while time.monotonic() < deadline:
            check_alive()
            try:
                if client.list_topics(timeout=0.5).brokers:
                    return
            except KafkaException as error:
                if error.args[0].code() not in NOT_READY:
                    raise
    raise BrokerError(f"the broker at {bootstrap} runs, but did not answer within {seconds:g} seconds")
