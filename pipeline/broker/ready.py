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

STARTING_ERRORS: Final = {KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN}


def wait_until_ready(bootstrap: str, check_alive: Callable[[], None], seconds: float = 90) -> None:
    """Return as soon as the broker answers a metadata request with at least one node; show it on stderr.

    Parameters
    ----------
    bootstrap : str
        The broker's address, ``host:port``.
    check_alive : callable
        Called before every try; raises if there is nothing left to wait for.
    seconds : float
        How long to wait in all.

    Raises
    ------
    BrokerError
        No answer within the time.
    """
    client = AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "reconnect.backoff.max.ms": 200,  # 10 s by default: the broker would be up long before it is seen
            "log_level": 0,  # refused connections are what is expected here
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
                if error.args[0].code() not in STARTING_ERRORS:
                    raise
    raise BrokerError(f"the broker at {bootstrap} runs, but has not answered within {seconds:g} seconds")
