"""Count the committed records of a topic as they arrive."""

from __future__ import annotations

from typing import Final, Self

from confluent_kafka import TopicPartition

from pipeline.config.tree import Kafka
from pipeline.kafka.clients import groupless_consumer

MAX_POLL_RECORDS: Final = 10_000
"""Messages that one poll counts, at most."""
POLL_TIMEOUT: Final = 0.1
"""Seconds to wait for that many messages."""


class RecordCounter:
    """Counter of the committed records of a topic with one partition.

    Use as a context manager.

    Parameters
    ----------
    kafka
        Connection of the topic.
    topic
        Name of the topic, which is read from its beginning.
    """

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self.topic = topic
        self.count = 0
        """Records so far."""
        self._consumer = groupless_consumer(kafka)
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def poll(self) -> int:
        """Count the records that have arrived since the last call, and return their number."""
        messages = self._consumer.consume(MAX_POLL_RECORDS, POLL_TIMEOUT)
        new = sum(message.error() is None for message in messages)
        self.count += new
        return new
