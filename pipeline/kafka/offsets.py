"""Asking the partitions' leaders where their records begin and end."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

TIMEOUT: Final = 10.0
"""Seconds for a broker to answer, and for a partition to have a leader."""
RETRY_BACKOFF: Final = 0.1
"""Seconds between two questions to a partition that has none yet."""

RETRIABLE_ERRORS: Final = {
    KafkaError._NOENT,  # no leader is known
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}
"""What a partition says that has no leader yet, or another one now."""


class PartitionId(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int


def list_offsets(
    client: AdminClient, partitions: Iterable[PartitionId], spec: OffsetSpec
) -> dict[PartitionId, int]:
    """The committed offset that fits a specification, in each partition.

    A partition that was just created or moved may have no leader for a moment: it is asked again.

    Raises
    ------
    KafkaException
        If a partition does not answer in time.
    """
    wanted = {TopicPartition(*place): spec for place in partitions}
    end = time.monotonic() + TIMEOUT
    while True:
        futures = client.list_offsets(
            wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=TIMEOUT
        )
        try:
            return {
                PartitionId(at.topic, at.partition): found.result().offset for at, found in futures.items()
            }
        except KafkaException as error:
            if error.args[0].code() not in RETRIABLE_ERRORS or time.monotonic() > end:
                raise
        time.sleep(RETRY_BACKOFF)
        client.list_topics(timeout=TIMEOUT)  # else the client goes on with what it knew before
