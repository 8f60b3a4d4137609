"""Follow the topics of live tables, and apply their records as far as state records say."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from confluent_kafka import Consumer, Message, TopicPartition

from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.errors import StateError
from pipeline.kafka.access.errors import is_partition_end
from pipeline.kafka.clients import groupless_consumer, raise_unless_retriable
from pipeline.kafka.topics import table_partition
from pipeline.recovery.table_rows import replay_rows
from pipeline.serving.served_model import ServedModel

MAX_QUEUED = 20_000
"""Records of all tables that are read ahead, at most, beside those of one poll."""
CONSUME_SIZE = 1_000
"""Records that one poll reads, at most."""
APPLIED_AT_ONCE = 500
"""Records of a table that are applied while requests wait, at most."""
PREFETCH = 2**21
"""Bytes that the client reads ahead, about."""


class NoTables:
    """In place of the tables of a stream that has none."""

    def poll(self) -> None:
        """Read nothing."""

    def apply(self, model: ServedModel, target: Mapping[str, int]) -> None:
        """Apply nothing."""

    def close(self) -> None:
        """Do nothing."""


class TopicTables:
    """Reads the tables of one model with a consumer of its own, outside any group.

    Partitions are at different offsets of a topic that all of them read, so that they cannot share one.

    Parameters
    ----------
    kafka
        Where the topics are.
    topics
        Their names.
    model
        The model, whose rows are as its versions say: reading begins there.
    """

    def __init__(self, kafka: Kafka, topics: Topics, model: ServedModel) -> None:
        self._kafka = kafka
        self._consumer: Consumer = groupless_consumer(kafka, prefetch=PREFETCH)
        self._names = {topics.table(name): name for name in model.versions}
        self._queues: dict[str, deque[Message]] = {name: deque() for name in model.versions}
        self._read_to = dict(model.versions)
        self._places = [
            TopicPartition(
                topic, table_partition(self._consumer, topic, model.partition), model.versions[name]
            )
            for topic, name in self._names.items()
        ]
        self._consumer.assign(self._places)
        self._paused = False

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def poll(self) -> None:
        """Read what is there, without waiting.

        Raises
        ------
        KafkaException
            The consumer cannot go on.
        """
        for message in self._consumer.consume(CONSUME_SIZE, 0.0):
            error, name = message.error(), self._names[message.topic() or ""]
            offset = message.offset() or 0
            if error is None:
                self._queues[name].append(message)
                self._read_to[name] = offset + 1
            elif is_partition_end(error):
                self._read_to[name] = max(self._read_to[name], offset)
            else:
                raise_unless_retriable(message, self._kafka)
        queued = sum(map(len, self._queues.values()))
        if queued > MAX_QUEUED and not self._paused:
            self._consumer.pause(self._places)
            self._paused = True
        elif queued < MAX_QUEUED // 2 and self._paused:
            self._consumer.resume(self._places)
            self._paused = False

    def apply(self, model: ServedModel, target: Mapping[str, int]) -> None:
        """Apply some of the records below offsets, by table, that were read.

        Raises
        ------
        StateError
            A table has no offset.
        """
        versions = {}
        for rows in model.rows:
            name = rows.features.name
            if name not in target:
                raise StateError(
                    f"the state record of partition {model.partition} does not name the table {name}"
                )
            queue, end = self._queues[name], target[name]
            found = [queue.popleft() for _ in range(APPLIED_AT_ONCE) if queue and _offset(queue[0]) < end]
            replay_rows(rows, found, end)
            versions[name] = min(end, _offset(queue[0]) if queue else self._read_to[name])
        model.versions = versions


def _offset(message: Message) -> int:
    return message.offset() or 0
