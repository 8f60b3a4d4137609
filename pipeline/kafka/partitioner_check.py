"""Check that both inputs were written with the partitioner that keeps a user's events together."""

from __future__ import annotations

import time
from collections import Counter

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from pipeline.config.tree import Kafka
from pipeline.errors import TopicError
from pipeline.kafka.clients import groupless_consumer
from pipeline.kafka.errors import is_partition_end
from pipeline.kafka.partitioner import partition
from pipeline.kafka.topics import Topics

SAMPLE = 1_000
"""Messages that are checked, at most."""
CHECK_TIMEOUT = 30.0
"""Seconds for the check, at most."""


def check_partitioning(kafka: Kafka, topics: Topics, partitions: int) -> None:
    """Check that the keys of the inputs' first messages are in the partitions that murmur2 gives.

    Both inputs need the same partitioner, or a label and its interaction are in different partitions.
    librdkafka's own default differs from that of the Java clients.

    Parameters
    ----------
    kafka
        Where the inputs are.
    topics
        Their names.
    partitions
        How many partitions each of them has.

    Raises
    ------
    TopicError
        Most keys of a topic are in other partitions.
    """
    if partitions == 1:
        return
    right, seen = Counter[str](), Counter[str]()
    for topic, number, key in _first_keys(kafka, topics, partitions):
        seen[topic] += 1
        right[topic] += partition(key, partitions) == number
    for topic, count in seen.items():
        if right[topic] < count / 2:
            raise TopicError(
                f"{topic}: only {right[topic]} of its first {count} keys are in the partition that murmur2 "
                "gives; write it with the Java clients' default partitioner, or with librdkafka's "
                "partitioner=murmur2_random"
            )


def _first_keys(kafka: Kafka, topics: Topics, partitions: int) -> list[tuple[str, int, bytes]]:
    """Return topic, partition and key of some messages at the beginning of every partition."""
    starts = [TopicPartition(t, p, OFFSET_BEGINNING) for t in topics.inputs for p in range(partitions)]
    keys: list[tuple[str, int, bytes]] = []
    ended = 0
    consumer = groupless_consumer(kafka)
    try:
        consumer.list_topics(timeout=CHECK_TIMEOUT)
        consumer.assign(starts)
        end = time.monotonic() + CHECK_TIMEOUT
        while len(keys) < SAMPLE and ended < len(starts) and time.monotonic() < end:
            for message in consumer.consume(SAMPLE, 0.1):
                error, key = message.error(), message.key()
                if error is None and key is not None:
                    keys.append((message.topic() or "", message.partition() or 0, key))
                elif error is not None and is_partition_end(error):
                    ended += 1
    finally:
        consumer.close()
    return keys
