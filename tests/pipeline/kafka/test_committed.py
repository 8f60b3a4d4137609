"""A group's committed offsets, and where a partition goes on from them."""

from __future__ import annotations

from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from pipeline.config.topics import Topics
from pipeline.errors import StateError
from pipeline.kafka.access.errors import COORDINATOR_ERRORS
from pipeline.kafka.committed import (
    CommittedOffset,
    CommittedPosition,
    committed_offsets,
    metadata,
    position_of,
)
from pipeline.kafka.offsets import PartitionId

TOPICS = Topics()
NOTHING = CommittedOffset(None, "")


class Group:
    """A group whose coordinator answers with these codes first."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)

    def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout > 0.0
        if self._codes:
            raise KafkaException(KafkaError(self._codes.pop(0)))
        return [
            TopicPartition(each.topic, each.partition, 7 if each.topic == "a" else -1001) for each in asked
        ]


def ask(*codes: int) -> dict[int, dict[str, CommittedOffset]]:
    partitions = [PartitionId(topic, partition) for partition in (1, 0) for topic in ("a", "b")]
    return committed_offsets(cast(Consumer, Group(*codes)), partitions)


@pytest.mark.parametrize("code", sorted(COORDINATOR_ERRORS))
def test_a_group_that_has_no_coordinator_yet_is_asked_again(code: int) -> None:
    found = ask(code)
    assert list(found) == [0, 1]
    assert found[1] == {"a": CommittedOffset(7, ""), "b": NOTHING}


def test_other_errors_are_raised() -> None:
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        ask(KafkaError.GROUP_AUTHORIZATION_FAILED)


def position(interactions: CommittedOffset, labels: CommittedOffset) -> CommittedPosition:
    offsets = {TOPICS.interactions: interactions, TOPICS.labels: labels}
    low_watermarks = {PartitionId(TOPICS.interactions, 3): 40, PartitionId(TOPICS.labels, 3): 50}
    return position_of(3, offsets, TOPICS, low_watermarks.__getitem__)


def test_a_partition_goes_on_from_its_committed_offsets_and_the_state_record_that_they_name() -> None:
    note = metadata(9)
    assert position(CommittedOffset(5, note), CommittedOffset(6, note)) == CommittedPosition(5, 6, 9)


def test_a_partition_without_committed_offsets_begins_at_the_low_watermarks() -> None:
    assert position(NOTHING, NOTHING) == CommittedPosition(40, 50, None)


@pytest.mark.parametrize(
    ("interactions", "labels"),
    [
        (CommittedOffset(5, ""), CommittedOffset(6, "")),
        (CommittedOffset(5, "other"), CommittedOffset(6, "other")),
        (CommittedOffset(5, metadata(9)), CommittedOffset(6, metadata(8))),
        (CommittedOffset(5, "state=" + 20 * "9"), CommittedOffset(6, "state=" + 20 * "9")),
        (CommittedOffset(5, metadata(2**63)), CommittedOffset(6, metadata(2**63))),
        (CommittedOffset(5, "state=-1"), CommittedOffset(6, "state=-1")),
        (CommittedOffset(5, "state=٣"), CommittedOffset(6, "state=٣")),
        (CommittedOffset(5, metadata(9)), NOTHING),
    ],
)
def test_offsets_that_no_worker_committed_are_refused(
    interactions: CommittedOffset, labels: CommittedOffset
) -> None:
    with pytest.raises(StateError, match="offsets of partition 3 were not committed by a worker"):
        position(interactions, labels)
