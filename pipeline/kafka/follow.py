"""Follow partitions: read committed messages as they arrive, without an end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from confluent_kafka import Consumer, Message, TopicPartition

from pipeline.config.tree import Kafka
from pipeline.kafka.clients import groupless_consumer
from pipeline.kafka.errors import raise_unless_retriable
from pipeline.kafka.offsets import PartitionId

POLL_TIMEOUT: Final = 0.2
"""Seconds to wait for a message; Ctrl-C takes effect between two polls."""


def follow(kafka: Kafka, offsets: Mapping[PartitionId, int]) -> Iterator[Message]:
    """Yield the committed messages of all partitions from the given offsets on, without an end.

    Parameters
    ----------
    kafka
        Connection of the topics.
    offsets
        First offset to read, by partition.

    Raises
    ------
    KafkaException
        If a partition cannot be read.
    """
    consumer: Consumer = groupless_consumer(kafka)
    try:
        consumer.assign([TopicPartition(*partition, offset) for partition, offset in offsets.items()])
        while True:
            message = consumer.poll(POLL_TIMEOUT)
            if message is None:
                continue
            error = message.error()
            if error is None:
                yield message
            else:
                raise_unless_retriable(error)
    finally:
        consumer.close()
