"""Whether a consumer that hears nothing is only idle, or has lost its brokers."""

from __future__ import annotations

import time
from typing import Final

from confluent_kafka import Consumer

MAX_SILENCE: Final = 10.0
"""Seconds without a message after which the brokers are asked for a sign of life."""
ANSWER_TIMEOUT: Final = 5.0
"""Seconds that they have for it."""


class Liveness:
    """Asks for a sign of life when nothing has come for a while.

    A broker that shuts down may name no broker at all in its last answer. librdkafka then forgets all that
    it knows, those that it was given at first included, and neither says so nor ever connects again (its
    issue 5301). Only a new client helps.

    Parameters
    ----------
    consumer
        The one to look after.
    topic
        Any that it reads.
    """

    def __init__(self, consumer: Consumer, topic: str) -> None:
        self._consumer = consumer
        self._topic = topic
        self._last_seen = time.monotonic()

    def check(self, *, received: bool) -> None:
        """Note that something has come, or look into it if nothing has for too long.

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
