"""What is committed at one moment, though workers go on: how far an audit has to look, in every topic."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Final, NamedTuple

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from pipeline.config.tree import Config
from pipeline.errors import StateError
from pipeline.kafka.clients import client_settings, group_consumer
from pipeline.kafka.offsets import TIMEOUT, PartitionId
from pipeline.kafka.topics import admin, partition_count, topics_of
from pipeline.kafka.watermarks import Watermarks

PAUSE: Final = 0.05
"""Seconds between two looks at open transactions."""
SLACK: Final = 20.0
"""Seconds beyond a transaction's timeout to wait for its end: brokers look for such every ten."""


class View(NamedTuple):
    """Offsets of one moment.

    Attributes
    ----------
    partitions
        Of each topic.
    records
        To look at, at most.
    ranges
        In each place, from the first record left to behind the last one to look at. All that was
        committed with the group's offsets lies in it.
    covered
        In each place, below which offset no record was written after the group's offsets were.
    committed
        By partition and input, what the group has committed.
    """

    partitions: int
    records: int
    ranges: dict[PartitionId, range]
    stable_offset: dict[PartitionId, int]
    committed: dict[int, dict[str, TopicPartition]]


def capture_view(config: Config) -> View:
    """Look, while workers may go on.

    The ends of what is committed are taken first, then the group's offsets, then the ends of all that
    was written, committed or not. So what lies before the first ends was in a transaction that the
    offsets cover, and all that the offsets cover lies before the last ends. Open transactions of workers
    are waited for; those of whoever writes the inputs hide nothing that a worker has read.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        Topics are missing or not as needed.
    StateError
        A transaction stays open.
    """
    topics = topics_of(config)
    client = admin(client_settings(config.kafka))
    partitions = partition_count(client, topics)
    watermarks = Watermarks(config.kafka, topics.all)
    first = watermarks.ranges()
    timeout = config.worker.transaction_timeout / 1000 + SLACK
    inputs = [
        topic_partition for topic_partition in watermarks.partitions if topic_partition.topic in topics.inputs
    ]
    committed = _committed(config, inputs, timeout)
    ends = _written(client, watermarks.partitions)
    outputs = {
        topic_partition: end
        for topic_partition, end in ends.items()
        if topic_partition.topic not in topics.inputs
    }
    _wait_for_transactions(watermarks, outputs, timeout)
    ranges = {
        topic_partition: range(found.start, ends[topic_partition]) for topic_partition, found in first.items()
    }
    records = sum(
        len(found) for topic_partition, found in ranges.items() if topic_partition.topic != topics.checkpoints
    )
    return View(
        partitions,
        records,
        ranges,
        {topic_partition: at.stop for topic_partition, at in first.items()},
        committed,
    )


def _committed(
    config: Config, places: list[PartitionId], timeout: float
) -> dict[int, dict[str, TopicPartition]]:
    """What the group has committed, once no transaction is about to change it."""
    found: dict[int, dict[str, TopicPartition]] = defaultdict(dict)
    consumer = group_consumer(config)
    try:
        for topic_partition in consumer.committed(
            [TopicPartition(*topic_partition) for topic_partition in places], timeout
        ):
            if topic_partition.error is not None:
                raise KafkaException(topic_partition.error)
            found[topic_partition.partition][topic_partition.topic] = topic_partition
    finally:
        consumer.close()
    return found


def _wait_for_transactions(watermarks: Watermarks, ends: dict[PartitionId, int], timeout: float) -> None:
    """Wait until all that was written before these ends is committed or taken back."""
    begin = time.monotonic()
    while hidden := [
        topic_partition
        for topic_partition, found in watermarks.ranges().items()
        if found.stop < ends.get(topic_partition, 0)
    ]:
        if time.monotonic() - begin > timeout:
            raise StateError(
                f"{hidden[0].topic}, partition {hidden[0].partition}: a transaction has been open for "
                f"{timeout:.0f} s, and hides what comes after it. Wait until the broker ends it, then "
                "audit again"
            )
        time.sleep(PAUSE)


def _written(client: AdminClient, places: list[PartitionId]) -> dict[PartitionId, int]:
    """Where the records of each place end, those of open transactions included."""
    spec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # lacks its types
    futures = client.list_offsets(
        {TopicPartition(*topic_partition): spec for topic_partition in places},
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
        request_timeout=TIMEOUT,
    )
    return {PartitionId(at.topic, at.partition): found.result().offset for at, found in futures.items()}
