"""The partitioner of Kafka's Java clients, and whether the inputs were written with it."""

from __future__ import annotations

import time
from collections import Counter

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.errors import TopicError
from pipeline.kafka.access.errors import is_partition_end
from pipeline.kafka.clients import groupless_consumer
from pipeline.kafka.deadline import close_consumer

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
BITS = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Hash bytes with Austin Appleby's MurmurHash2 and Kafka's seed, to an unsigned 32-bit integer.

    Examples
    --------
    >>> murmur2(b"foobar") - 2**32
    -790332482
    """
    end = len(data) & ~3
    digest = SEED ^ len(data)
    for begin in range(0, end, 4):
        word = int.from_bytes(data[begin : begin + 4], "little") * MULTIPLIER & BITS
        word = (word ^ word >> 24) * MULTIPLIER & BITS
        digest = digest * MULTIPLIER & BITS ^ word
    if end < len(data):
        digest = (digest ^ int.from_bytes(data[end:], "little")) * MULTIPLIER & BITS
    digest = (digest ^ digest >> 13) * MULTIPLIER & BITS
    return digest ^ digest >> 15


def partition(key: bytes, partitions: int) -> int:
    """Return the partition of a record with this key.

    Examples
    --------
    >>> [partition(user, 8) for user in (b"0", b"1", b"2")]
    [4, 7, 0]
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions


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
        close_consumer(consumer)
    return keys
