"""Find where a topic's committed records are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from confluent_kafka.admin import OffsetSpec

from pipeline.config.settings import Kafka
from pipeline.errors import TopicError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.offsets import (
    PartitionId,
    high_watermarks,
    last_stable_offsets,
    list_offsets,
    low_watermarks,
)
from pipeline.kafka.outage import outlast
from pipeline.kafka.topics import existing_topics

Answer = TypeVar("Answer")


class Watermarks:
    """The partitions of topics, and the offsets between which their committed records lie.

    Parameters
    ----------
    kafka
        Where the topics are.
    topics
        Their names.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        A topic does not exist.
    AuthorizationError
        The brokers do not tell this client whether a topic exists.
    """

    def __init__(self, kafka: Kafka, topics: Iterable[str]) -> None:
        self._kafka = kafka
        self._connect()
        wanted = list(topics)
        present = self._ask(lambda client: existing_topics(client, wanted))
        missing = [topic for topic in wanted if topic not in present]
        if missing:
            raise TopicError(
                f"no topic {' and no topic '.join(missing)} at {kafka.bootstrap}; name their prefix with "
                "--prefix, or create them with `forks topics create`"
            )
        self.partitions = [
            PartitionId(topic, partition)
            for topic in wanted
            for partition in sorted(present[topic].partitions)
        ]
        """Every partition, by topic and number."""

    def ranges(self) -> dict[PartitionId, range]:
        """Return the offsets of each partition; not every one of them has a committed record."""
        begins = self._ask(lambda client: low_watermarks(client, self.partitions))
        ends = self._ask(lambda client: last_stable_offsets(client, self.partitions))
        return {partition: range(begins[partition], ends[partition]) for partition in self.partitions}

    def high_watermarks(self) -> dict[PartitionId, int]:
        """Return the offset behind the last record of each partition, open transactions included."""
        return self._ask(lambda client: high_watermarks(client, self.partitions))

    def offsets_for_times(self, timestamp: int) -> dict[PartitionId, int | None]:
        """Return, for each partition, the offset before which all records are earlier than a time.

        The markers of transactions count too, with the time at which they were written, so the first record
        from the offset on may still be an earlier one.

        Parameters
        ----------
        timestamp
            The time, in milliseconds.

        Returns
        -------
        dict of PartitionId to int or None
            The offsets; None for a partition without a record of that time or later.
        """
        wanted = OffsetSpec.for_timestamp(timestamp)
        found = self._ask(lambda client: list_offsets(client, self.partitions, wanted))
        return {partition: None if offset < 0 else offset for partition, offset in found.items()}

    def _connect(self) -> None:
        self._admin = Admin(self._kafka)

    def _ask(self, request: Callable[[Admin], Answer]) -> Answer:
        """Return the answer to a request; brokers that go away meanwhile are waited for."""
        return outlast(self._kafka, lambda: request(self._admin), self._connect)
