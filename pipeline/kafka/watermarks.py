"""Where a topic's committed records are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from confluent_kafka import Message
from confluent_kafka.admin import OffsetSpec

from pipeline.config.tree import Kafka
from pipeline.errors import TopicError
from pipeline.kafka.clients import client_settings
from pipeline.kafka.log import LogReader
from pipeline.kafka.offsets import (
    PartitionId,
    high_watermarks,
    last_stable_offsets,
    list_offsets,
    low_watermarks,
)
from pipeline.kafka.retries import BROKER_TIMEOUT
from pipeline.kafka.topics import admin


class Watermarks:
    """The partitions of topics, and the offsets between which their committed records lie.

    Parameters
    ----------
    kafka
        Where to look.
    topics
        Which.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        A topic does not exist.
    """

    def __init__(self, kafka: Kafka, topics: Iterable[str]) -> None:
        self._admin = admin(client_settings(kafka))
        present = self._admin.list_topics(timeout=BROKER_TIMEOUT).topics
        wanted = list(topics)
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
        """The offsets of each partition. Not at every one of them is there a committed record."""
        begins = low_watermarks(self._admin, self.partitions)
        ends = last_stable_offsets(self._admin, self.partitions)
        return {partition: range(begins[partition], ends[partition]) for partition in self.partitions}

    def high_watermarks(self) -> dict[PartitionId, int]:
        """Return the offset behind the last record of each partition, open transactions included."""
        return high_watermarks(self._admin, self.partitions)

    def offsets_for_times(self, timestamp: int) -> dict[PartitionId, int | None]:
        """Offsets before which no record has this timestamp (milliseconds) or a later one.

        None where no record has. The markers of transactions count too, with the time at which they
        were written: a record there may be an earlier one.
        """
        found = list_offsets(self._admin, self.partitions, OffsetSpec.for_timestamp(timestamp))
        return {partition: None if offset < 0 else offset for partition, offset in found.items()}


def last_messages(
    log: LogReader,
    partition: PartitionId,
    offsets: range,
    count: int,
    wanted: Callable[[Message], bool] = lambda _: True,
) -> list[Message]:
    """The last committed messages of a partition, at most `count`, in the order of their offsets.

    At many an offset there is none: the markers of transactions take some, and so do messages that
    were aborted or compacted away. So this goes back ever farther, until it has found enough.
    """
    reach = 2 * count + 8
    while True:
        begin = max(offsets.start, offsets.stop - reach)
        found = deque(filter(wanted, log.read_to_end(*partition, begin)), maxlen=count)
        if len(found) == count or begin == offsets.start:
            return list(found)
        reach *= 4
