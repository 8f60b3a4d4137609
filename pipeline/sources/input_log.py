"""Read the end of the two input topics before and after a replay."""

from __future__ import annotations

from typing import Final

from confluent_kafka import Consumer, KafkaError, TopicPartition

from pipeline.config.settings import Kafka
from pipeline.config.stream import KUAIREC, Stream
from pipeline.config.topics import Topics
from pipeline.errors import BrokerError, StateError, TopicError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.new_client import client_settings, new_client
from pipeline.kafka.clients import raise_unless_retriable
from pipeline.kafka.topics import existing_topics
from pipeline.sources.resume import Tail, Tails

TIMEOUT: Final = 10.0
"""Seconds for an answer of a broker that answered a moment ago."""
LAST_RECORD: Final = -2001
"""librdkafka's logical offset of the last record, OFFSET_TAIL(1)."""


class InputLog:
    """The topics of interactions and labels.

    Attributes
    ----------
    topics
        Names of the two topics.
    partitions
        Number of partitions of each topic.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        A topic is missing, or the two have different numbers of partitions.
    """

    def __init__(self, kafka: Kafka, stream: Stream = KUAIREC) -> None:
        self.topics = Topics(kafka.prefix, input_prefix=kafka.input_prefix, stream=stream).inputs
        self._kafka = kafka
        self._admin = Admin(kafka)
        self.partitions = self._count_partitions()

    def tails(self) -> Tails:
        """Read the end offset and the last record of each partition.

        Returns
        -------
        tuple of lists
            By partition: the tails of the topic of interactions, and of the topic of labels.

        Raises
        ------
        BrokerError
            The broker does not answer any more.
        StateError
            The last record of a partition was deleted.
        """
        topic_partitions = [
            TopicPartition(topic, n, LAST_RECORD) for topic in self.topics for n in range(self.partitions)
        ]
        consumer = new_client(
            Consumer,
            client_settings(self._kafka)
            | {
                "group.id": "forks-replay",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_uncommitted",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
            },
        )
        try:
            consumer.assign(topic_partitions)
            found = self._read_to_ends(consumer, len(topic_partitions))
        finally:
            consumer.close()
        first, second = ([found[topic, n] for n in range(self.partitions)] for topic in self.topics)
        return first, second

    def _read_to_ends(self, consumer: Consumer, partitions: int) -> dict[tuple[str | None, int | None], Tail]:
        last: dict[tuple[str | None, int | None], bytes | None] = {}
        found: dict[tuple[str | None, int | None], Tail] = {}
        while len(found) < partitions:
            message = consumer.poll(TIMEOUT)
            if message is None:
                raise BrokerError(f"Kafka did not answer within {TIMEOUT:.0f} s where the partitions end")
            topic_partition = message.topic(), message.partition()
            error = message.error()
            if error is None:
                last[topic_partition] = message.value()
            elif error.code() == KafkaError._PARTITION_EOF:
                found[topic_partition] = Tail(message.offset() or 0, last.get(topic_partition))
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise StateError(
                    f"{topic_partition[0]}, partition {topic_partition[1]}: the last record was deleted, "
                    f"probably by the topic's retention ({error.str()}); replay into new topics, with "
                    "another --prefix"
                )
            else:
                raise_unless_retriable(message, self._kafka)
        return found

    def _count_partitions(self) -> int:
        present = existing_topics(self._admin, self.topics)
        prefix = f" --prefix {self._kafka.prefix}" if self._kafka.prefix else ""
        missing = [topic for topic in self.topics if topic not in present]
        if missing:
            raise TopicError(
                f"no topic {' and no topic '.join(missing)} at {self._kafka.bootstrap}; "
                f"create the topics with: forks topics create{prefix}"
            )
        first, second = (len(present[topic].partitions) for topic in self.topics)
        if first != second:
            raise TopicError(
                f"{self.topics[0]} has {first} partitions and {self.topics[1]} {second}, but an interaction "
                "and its label belong in partitions of the same number; create both with as many partitions"
            )
        return first
