"""Find out whether a consumer without messages is idle, or has lost its brokers."""

from __future__ import annotations

import time
from typing import Final

from confluent_kafka import Consumer

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
