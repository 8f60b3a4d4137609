"""Committed input offsets, and the state record that they name."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from pipeline.errors import StateError
from pipeline.kafka.topics import Topics

TIMEOUT = 30.0
"""Seconds to wait for the group's coordinator."""
RETRY_BACKOFF = 0.1
"""Seconds between two questions to a coordinator that is not ready."""
RETRIABLE_ERRORS = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}
"""What brokers say while a group has no coordinator yet, or gets another one."""


class CommittedPosition(NamedTuple):
    """Where a partition's inputs go on, and the state record that was committed with them."""

    interactions: int
    labels: int
    state_offset: int | None


def metadata(state_offset: int) -> str:
    """What is committed with the input offsets: where the state record is."""
    return f"state={state_offset}"


def committed(
    consumer: Consumer, topic_partitions: list[TopicPartition]
) -> dict[int, dict[str, TopicPartition]]:
    """What the consumer's group has committed, by partition and topic, in the order of the partitions.

    Raises
    ------
    KafkaException
        If the group's coordinator does not tell.
    """
    end = time.monotonic() + TIMEOUT
    while True:
        try:
            answered = consumer.committed(topic_partitions, TIMEOUT)
            break
        except KafkaException as error:
            if error.args[0].code() not in RETRIABLE_ERRORS or time.monotonic() > end:
                raise
        time.sleep(RETRY_BACKOFF)
    found: dict[int, dict[str, TopicPartition]] = defaultdict(dict)
    for place in sorted(answered, key=lambda place: place.partition):
        if place.error is not None:
            raise KafkaException(place.error)
        found[place.partition][place.topic] = place
    return found


def committed_position(
    topic_partitions: dict[str, TopicPartition], topics: Topics, beginning: Callable[[TopicPartition], int]
) -> CommittedPosition:
    """Where to start, by the group's committed offsets of one partition by topic, else from the beginning.

    Raises
    ------
    StateError
        If offsets were committed that no transaction of a worker wrote.
    """
    offsets, notes = {}, set()
    for topic in topics.inputs:
        place = topic_partitions[topic]
        offsets[topic] = place.offset if place.offset >= 0 else beginning(place)
        notes.add(place.metadata or "" if place.offset >= 0 else None)
    interactions, labels = offsets[topics.interactions], offsets[topics.labels]
    if notes == {None}:
        return CommittedPosition(interactions, labels, None)
    note = notes.pop()
    if notes or not note or not note.startswith("state="):
        raise StateError(
            f"the group's offsets of partition {topic_partitions[topics.interactions].partition} were not "
            "committed by a worker: they carry no state. Take another kafka.group with another "
            "kafka.prefix, or delete the group's offsets and all outputs to start anew"
        )
    return CommittedPosition(interactions, labels, int(note.removeprefix("state=")))
