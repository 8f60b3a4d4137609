"""Follow topics of a pipeline while workers write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Self

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from pipeline.config.settings import Kafka
from pipeline.kafka.access.new_client import client_settings, new_client
from pipeline.kafka.clients import groupless_consumer, raise_unless_retriable
from pipeline.kafka.committed import committed_offsets
from pipeline.kafka.deadline import close_consumer
from pipeline.kafka.liveness import Liveness
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.outage import await_broker

MAX_POLL_RECORDS: Final = 10_000
"""Messages that one poll counts, at most."""
POLL_TIMEOUT: Final = 0.1
"""Seconds to wait for messages; Ctrl-C takes effect between two polls."""


def follow(kafka: Kafka, offsets: Mapping[PartitionId, int]) -> Iterator[Message]:
    """Yield the committed messages of all partitions from the given offsets on, without an end.

    Brokers that go away are waited for.

    Parameters
    ----------
    kafka
        Connection of the topics.
    offsets
        First offset to read, by partition.

    Raises
    ------
    KafkaException
        If a partition cannot be read.
    """
    left = dict(offsets)
    while True:
        try:
            for message in _follow(kafka, left):
                left[PartitionId(message.topic() or "", message.partition() or 0)] = (
                    message.offset() or 0
                ) + 1
                yield message
        except KafkaException as error:
            await_broker(kafka, error)


def _follow(kafka: Kafka, offsets: Mapping[PartitionId, int]) -> Iterator[Message]:
    """Follow as long as brokers answer."""
    consumer: Consumer = groupless_consumer(kafka)
    try:
        consumer.assign([TopicPartition(*partition, offset) for partition, offset in offsets.items()])
        liveness = Liveness(consumer, next(iter(offsets)).topic)
        while True:
            message = consumer.poll(POLL_TIMEOUT)
            liveness.check(received=message is not None)
            if message is None:
                continue
            if message.error() is None:
                yield message
            else:
                raise_unless_retriable(message, kafka)
    finally:
        close_consumer(consumer)


class RecordCounter:
    """Counter of the committed records of a topic with one partition.

    Use as a context manager.

    Parameters
    ----------
    kafka
        Connection of the topic.
    topic
        Name of the topic, which is read from its beginning.
    """

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self.topic = topic
        self.count = 0
        """Records so far."""
        self._consumer = groupless_consumer(kafka)
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def poll(self) -> int:
        """Count the records that have arrived since the last call, and return their number."""
        messages = self._consumer.consume(MAX_POLL_RECORDS, POLL_TIMEOUT)
        new = sum(message.error() is None for message in messages)
        self.count += new
        return new


class ProcessedCounter:
    """Counter of the input messages that a group has processed, by the offsets that it has committed.

    Use as a context manager. It is never a member of the group.

    Parameters
    ----------
    kafka
        Connection of the topics, and the group.
    topics
        Names of the inputs, each with one partition.
    """

    def __init__(self, kafka: Kafka, topics: Iterable[str]) -> None:
        # The admin client's question for offsets ends the process in librdkafka 2.16 where the broker has
        # not had a group yet.
        settings = client_settings(kafka) | {"group.id": kafka.group, "isolation.level": "read_uncommitted"}
        self._consumer = new_client(Consumer, settings)
        self._inputs = [PartitionId(topic, 0) for topic in topics]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def count(self) -> int:
        """Return how many there are now; those of a transaction only once it is committed."""
        [found] = committed_offsets(self._consumer, self._inputs).values()
        return sum(each.offset or 0 for each in found.values())
