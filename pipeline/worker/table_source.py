"""Read the topics of live tables into the queues of a worker's tasks, beside the inputs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping

from confluent_kafka import Consumer, Message, TopicPartition

from pipeline.config.settings import Config, Kafka
from pipeline.config.topics import Topics, topics_of
from pipeline.errors import StateError
from pipeline.features.live_tables import in_force
from pipeline.kafka.access.errors import is_partition_end
from pipeline.kafka.clients import groupless_consumer, raise_unless_retriable
from pipeline.kafka.deadline import close_consumer
from pipeline.kafka.liveness import Liveness
from pipeline.kafka.topics import table_partition
from pipeline.records.decoding import RejectedRecord
from pipeline.task.live_tables import LiveTable, LiveTables
from pipeline.worker.clock import wall_clock

MAX_QUEUED = 20_000
"""Records of a table that are read ahead, at most, beside those of one poll."""
CONSUME_SIZE = 1_000
"""Records that one poll reads, at most."""
PREFETCH = 2**21
"""Bytes that the client of each partition reads ahead, about."""


class TableReader:
    """Reads the tables of one partition with a consumer of its own, outside the group.

    Partitions are at different offsets of a topic that all of them read, so that they cannot share one.

    Parameters
    ----------
    config
        The whole configuration.
    partition
        The number of the partition.
    tables
        Its tables: reading begins where they are.
    """

    def __init__(self, config: Config, partition: int, tables: LiveTables) -> None:
        self._kafka: Kafka = config.kafka
        self._join = config.join
        self._tables: Mapping[str, LiveTable] = _by_topic(topics_of(config), tables)
        self._consumer: Consumer = groupless_consumer(config.kafka, prefetch=PREFETCH)
        self._places = {
            topic: (topic, table_partition(self._consumer, topic, partition)) for topic in self._tables
        }
        self._positions = {topic: table.offset for topic, table in self._tables.items()}
        self._ends = dict.fromkeys(self._tables, -1)
        self._last_record_at = dict.fromkeys(self._tables, time.monotonic())
        self._paused = dict.fromkeys(self._tables, False)
        self._liveness = Liveness(self._consumer, next(iter(self._tables)))
        self._consumer.assign(
            [TopicPartition(*place, self._positions[topic]) for topic, place in self._places.items()]
        )

    def close(self) -> None:
        """Close the connections."""
        close_consumer(self._consumer)

    @property
    def tables(self) -> int:
        """Number of tables."""
        return len(self._tables)

    def poll(self, share: int) -> None:
        """Read what is there, without waiting.

        Parameters
        ----------
        share
            Bytes above which a table's queue is not filled any more.

        Raises
        ------
        KafkaException
            The consumer cannot go on, or no broker answers it.
        StateError
            A topic was deleted, and perhaps created anew.
        """
        messages = self._consumer.consume(CONSUME_SIZE, 0.0)
        self._liveness.check(received=bool(messages))
        delivered: dict[str, list[Message]] = defaultdict(list)
        for message in messages:
            error, topic = message.error(), message.topic() or ""
            if error is None:
                delivered[topic].append(message)
            elif is_partition_end(error):
                self._ends[topic] = message.offset() or 0
            else:
                raise_unless_retriable(message, self._kafka)
        latest = wall_clock() + self._join.max_ahead
        for topic, found in delivered.items():
            self._feed(topic, found, latest)
        for topic, table in self._tables.items():
            self._update_at_end(topic, table)
            self._apply_backpressure(topic, table, share)

    def _feed(self, topic: str, messages: list[Message], latest: int) -> None:
        table, position = self._tables[topic], self._positions[topic]
        if (messages[0].offset() or 0) < position:
            raise StateError(
                f"the table's topic {topic} ends before offset {position}, up to which it was read: it was "
                "deleted and created anew. Replay into new topics, with another kafka.prefix"
            )
        decode = table.features.decode
        records = [decode(each.key(), each.value(), each.timestamp()[1]) for each in messages]
        timed = [each if isinstance(each, RejectedRecord) else in_force(each, latest) for each in records]
        table.feed(messages, timed)
        self._positions[topic] = (messages[-1].offset() or 0) + 1
        self._last_record_at[topic] = time.monotonic()

    def _update_at_end(self, topic: str, table: LiveTable) -> None:
        """Find out whether a table is at its end, for which the merge need not wait.

        A leader that is new may know of an end before the position, which is no end.
        """
        if table.queue.ready:
            return
        _, end = self._consumer.get_watermark_offsets(TopicPartition(*self._places[topic]), cached=True)
        ended = self._positions[topic] <= self._ends[topic] or end == self._positions[topic]
        quiet = (time.monotonic() - self._last_record_at[topic]) * 1000
        table.queue.at_end = ended and quiet >= self._join.max_idle

    def _apply_backpressure(self, topic: str, table: LiveTable, share: int) -> None:
        """Read as far ahead as there is room."""
        queue, place = table.queue, TopicPartition(*self._places[topic])
        full = len(queue) > MAX_QUEUED or queue.bytes > share
        if full and not self._paused[topic]:
            self._consumer.pause([place])
            self._paused[topic] = True
        elif self._paused[topic] and len(queue) < MAX_QUEUED // 2 and queue.bytes <= share // 2:
            self._consumer.resume([place])
            self._paused[topic] = False


class TableSource:
    """The readers of a worker's partitions.

    Parameters
    ----------
    config
        The whole configuration.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._buffer = config.worker.buffer // 8
        self._readers: dict[int, TableReader] = {}

    def connect(self, partition: int, tables: LiveTables) -> None:
        """Read the tables of a partition from where they are; nothing to do without tables."""
        if partition in self._readers:
            self._readers.pop(partition).close()
        if tables:
            self._readers[partition] = TableReader(self._config, partition, tables)

    def clear(self) -> None:
        """Read no table any more."""
        while self._readers:
            self._readers.popitem()[1].close()

    def poll(self) -> None:
        """Read what is there for each partition: see `TableReader.poll`."""
        share = self._buffer // max(1, sum(reader.tables for reader in self._readers.values()))
        for reader in self._readers.values():
            reader.poll(share)


def _by_topic(topics: Topics, tables: LiveTables) -> dict[str, LiveTable]:
    return {topics.table(table.features.name): table for table in tables.tables}
