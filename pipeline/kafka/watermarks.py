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
from pipeline.kafka.offsets import TIMEOUT, PartitionId, list_offsets
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
        present = self._admin.list_topics(timeout=TIMEOUT).topics
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
        begins = self._find(OffsetSpec.earliest())  # type: ignore[no-untyped-call]  # lacks its types
        ends = self._find(OffsetSpec.latest())  # type: ignore[no-untyped-call]  # as above
        return {place: range(begins[place], ends[place]) for place in self.partitions}

    def offsets_for_times(self, timestamp: int) -> dict[PartitionId, int | None]:
        """Offsets before which no record has this timestamp (milliseconds) or a later one.

        None where no record has. The markers of transactions count too, with the time at which they
        were written: a record there may be an earlier one.
        """
        found = self._find(OffsetSpec.for_timestamp(timestamp))
        return {place: None if offset < 0 else offset for place, offset in found.items()}

    def _find(self, spec: OffsetSpec) -> dict[PartitionId, int]:
        return list_offsets(self._admin, self.partitions, spec)


def last_messages(
    log: LogReader,
    place: PartitionId,
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
        found = deque(filter(wanted, log.read_to_end(*place, begin)), maxlen=count)
        if len(found) == count or begin == offsets.start:
            return list(found)
        reach *= 4
