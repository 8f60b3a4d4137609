"""Whether brokers answer: wait until one is ready, notice one that is gone."""

from __future__ import annotations

import time
from typing import Final

from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from pipeline.kafka.access.errors import CONNECTION_ERRORS
from pipeline.kafka.access.new_client import new_client


class Probe:
    """Asks a broker that may not be there yet.

    Parameters
    ----------
    bootstrap
        The broker's address, ``host:port``.
    """

    def __init__(self, bootstrap: str) -> None:
        self._client = new_client(
            AdminClient,
            {
                "bootstrap.servers": bootstrap,
                "reconnect.backoff.max.ms": 200,  # with the default of 10 s a ready broker is noticed late
                "log_level": 0,  # log lines would wait in a queue that nobody reads
            },
        )

    def answers(self, timeout: float) -> bool:
        """Return whether the broker answers a metadata request with at least one node.

        Parameters
        ----------
        timeout
            Seconds to wait for the answer.

        Returns
        -------
        bool
            False while nothing answers.

        Raises
        ------
        KafkaException
            The broker refuses the request.
        """
        try:
            return bool(self._client.list_topics(timeout=timeout).brokers)
        except KafkaException as error:
            if error.args[0].code() not in CONNECTION_ERRORS:
                raise
            return False


MAX_SILENCE: Final = 10.0
"""Seconds without a message after which the brokers are asked for metadata."""
ANSWER_TIMEOUT: Final = 5.0
"""Seconds for a broker to answer."""


class Liveness:
    """Asks the brokers for metadata when no message has arrived for a while.

    A broker that shuts down may name no broker at all in its last answer. librdkafka then forgets all
    brokers, the bootstrap servers included, reports no error and never connects again (its issue 5301). Only
    a new client helps.

    Parameters
    ----------
    consumer
        The consumer to check.
    topic
        Any topic that it reads.
    """

    def __init__(self, consumer: Consumer, topic: str) -> None:
        self._consumer = consumer
        self._topic = topic
        self._last_seen = time.monotonic()

    def check(self, *, received: bool) -> None:
        """Note that messages were received, or ask the brokers if none were for too long.

        Parameters
        ----------
        received
            Whether the last poll returned a message or an event.

        Raises
        ------
        KafkaException
            No broker answers this consumer. Make another.
        """
        now = time.monotonic()
        if not received and now - self._last_seen < MAX_SILENCE:
            return
        if not received:
            self._consumer.list_topics(self._topic, ANSWER_TIMEOUT)
        self._last_seen = now
