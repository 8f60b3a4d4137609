"""Committed input offsets, and the state record that they name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from pipeline.config.topics import Topics
from pipeline.errors import StateError
from pipeline.kafka.access.errors import COORDINATOR_ERRORS, COORDINATOR_TIMEOUT, retry
from pipeline.kafka.offsets import PartitionId
from pipeline.records.fields import INTEGER_LIMIT

METADATA_PREFIX = "state="
"""What stands before the state record's offset in the metadata of a committed offset."""


class CommittedPosition(NamedTuple):
    """Where a partition's inputs go on, and the state record that was committed with them."""

    interactions: int
    labels: int
    state_offset: int | None


class CommittedOffset(NamedTuple):
    """What a group has committed for one input of a partition."""

    offset: int | None
    """None if nothing was committed."""
    metadata: str


def metadata(state_offset: int) -> str:
    """Return what is committed with the input offsets: where the state record is."""
    return f"{METADATA_PREFIX}{state_offset}"


def _state_offset(note: str | None) -> int | None:
    """Return the offset of the inverse of `metadata`; None for a note that no worker wrote."""
    found = re.fullmatch(f"{METADATA_PREFIX}([0-9]{{1,19}})", note or "", re.ASCII)
    offset = int(found[1]) if found else INTEGER_LIMIT
    return offset if offset < INTEGER_LIMIT else None


def committed_offsets(
    consumer: Consumer, partitions: Iterable[PartitionId], timeout: float = COORDINATOR_TIMEOUT
) -> dict[int, dict[str, CommittedOffset]]:
    """Ask for the committed offsets of the consumer's group.

    Parameters
    ----------
    consumer
        Any consumer with the group's name; it need not be a member.
    partitions
        The partitions to ask for.
    timeout
        Seconds for the coordinator to answer.

    Returns
    -------
    dict of int to dict of str to CommittedOffset
        By partition and topic, in the order of the partitions.

    Raises
    ------
    KafkaException
        The group's coordinator does not answer, or refuses to.
    """
    wanted = [TopicPartition(*partition) for partition in partitions]
    answered = retry(lambda: consumer.committed(wanted, timeout), COORDINATOR_ERRORS, timeout)
    found: dict[int, dict[str, CommittedOffset]] = defaultdict(dict)
    for answer in sorted(answered, key=lambda answer: answer.partition):
        if answer.error is not None:
            raise KafkaException(answer.error)
        offset = answer.offset if answer.offset >= 0 else None
        found[answer.partition][answer.topic] = CommittedOffset(offset, answer.metadata or "")
    return found


def committed_positions(
    consumer: Consumer, topics: Topics, partitions: Iterable[int]
) -> dict[int, CommittedPosition]:
    """Ask where some partitions go on: see `committed_offsets` and `position_of`."""
    wanted = [PartitionId(topic, partition) for topic in topics.inputs for partition in partitions]

    def low_watermark(partition: PartitionId) -> int:
        low, _ = consumer.get_watermark_offsets(TopicPartition(*partition), COORDINATOR_TIMEOUT)
        return low

    return {
        partition: position_of(partition, offsets, topics, low_watermark)
        for partition, offsets in committed_offsets(consumer, wanted).items()
    }


def position_of(
    partition: int,
    offsets: Mapping[str, CommittedOffset],
    topics: Topics,
    low_watermark: Callable[[PartitionId], int],
) -> CommittedPosition:
    """Return where a partition goes on.

    Parameters
    ----------
    partition
        Its number.
    offsets
        What the group has committed for it, by topic.
    topics
        The names of the topics.
    low_watermark
        Finds the first offset of an input for which nothing was committed.

    Returns
    -------
    CommittedPosition
        The committed offsets, else the inputs' beginning and no state record.

    Raises
    ------
    StateError
        Offsets were committed by something else than a worker's transaction.
    """
    found = [offsets[topic] for topic in topics.inputs]
    interactions, labels = (
        low_watermark(PartitionId(topic, partition)) if committed.offset is None else committed.offset
        for topic, committed in zip(topics.inputs, found, strict=True)
    )
    if all(committed.offset is None for committed in found):
        return CommittedPosition(interactions, labels, None)
    notes = {None if committed.offset is None else committed.metadata for committed in found}
    note = notes.pop()
    state_offset = _state_offset(note)
    if notes or state_offset is None:
        raise StateError(
            f"the group's offsets of partition {partition} were not committed by a worker: they carry no "
            "offset of a state record. If the offsets themselves are right, `forks checkpoint recover` finds "
            "the state again. Else take another kafka.group with another kafka.prefix, or delete the group's "
            "offsets and all outputs to start anew"
        )
    return CommittedPosition(interactions, labels, state_offset)
