"""Ask the partitions' leaders for offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec

from pipeline.kafka.access.authorization import needing
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.errors import BROKER_TIMEOUT, LEADER_ERRORS, retry
from pipeline.kafka.access.rights import Resource


class PartitionId(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int


def low_watermarks(client: Admin, partitions: Iterable[PartitionId]) -> dict[PartitionId, int]:
    """Return the first offset that retention has left in each partition; raise as `list_offsets`."""
    return list_offsets(client, partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]  # lacks its types


def last_stable_offsets(client: Admin, partitions: Iterable[PartitionId]) -> dict[PartitionId, int]:
    """Return each partition's last stable offset, before which all is committed; raise as `list_offsets`."""
    return list_offsets(client, partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]  # as above


def high_watermarks(client: Admin, partitions: Iterable[PartitionId]) -> dict[PartitionId, int]:
    """Return each partition's high watermark, open transactions included; raise as `list_offsets`."""
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # as above
    return list_offsets(client, partitions, latest, IsolationLevel.READ_UNCOMMITTED)


def list_offsets(
    client: Admin,
    partitions: Iterable[PartitionId],
    spec: OffsetSpec,
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
) -> dict[PartitionId, int]:
    """Return the offset that fits a specification, in each partition.

    A partition that was just created or moved may have no leader for a moment: it is asked again.

    Parameters
    ----------
    client
        Asks.
    partitions
        The partitions to ask.
    spec
        Which offset is wanted.
    isolation
        Whether the records of open transactions count.

    Returns
    -------
    dict of PartitionId to int
        The offsets; -1 where no record fits.

    Raises
    ------
    KafkaException
        A partition does not answer in time.
    AuthorizationError
        The brokers do not tell this client of a topic.
    """
    wanted = {TopicPartition(*partition): spec for partition in partitions}

    def request() -> dict[PartitionId, int]:
        futures = client.list_offsets(wanted, isolation_level=isolation, request_timeout=BROKER_TIMEOUT)
        found = {}
        for asked, future in futures.items():
            with needing(client.kafka, "Describe", Resource.TOPIC, asked.topic):
                found[PartitionId(asked.topic, asked.partition)] = future.result().offset
        return found

    def refresh() -> None:  # without it the client goes on with the leaders that it knew
        client.list_topics(timeout=BROKER_TIMEOUT)

    return retry(request, LEADER_ERRORS, BROKER_TIMEOUT, refresh)
