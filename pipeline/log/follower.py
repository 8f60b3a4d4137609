"""Follow the outcomes and the state records of several partitions while workers write them."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.errors import is_partition_end
from pipeline.kafka.clients import groupless_consumer, raise_unless_retriable
from pipeline.kafka.deadline import BackgroundCall
from pipeline.kafka.liveness import Liveness
from pipeline.kafka.offsets import PartitionId, last_stable_offsets

MAX_POLL_RECORDS: Final = 500
"""Messages of one poll, at most: they are decoded in one go, while requests wait for the interpreter."""


@dataclass
class Polled:
    """What one poll has read."""

    outcomes: dict[int, list[Message]] = field(default_factory=lambda: defaultdict(list))
    """By partition."""
    checkpoints: dict[int, list[Message]] = field(default_factory=lambda: defaultdict(list))
    """By partition: state records, and chunks of snapshots."""
    ends: dict[int, int] = field(default_factory=dict)
    """The end of the outcomes, by partition that was read up to it."""


class LogFollower:
    """Reads what is committed to the outcomes and checkpoints of partitions, with one consumer for all.

    Parameters
    ----------
    kafka
        Where the topics are.
    topics
        Their names.
    """

    def __init__(self, kafka: Kafka, topics: Topics) -> None:
        self._kafka = kafka
        self._topics = topics
        self._consumer: Consumer = groupless_consumer(kafka)
        self._liveness = Liveness(self._consumer, topics.outcomes)
        self._paused: set[int] = set()
        self._assigned: set[int] = set()

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def assign(self, partition: int, checkpoints: int, outcomes: int) -> None:
        """Read a partition from these offsets of its two topics on."""
        places = [
            TopicPartition(self._topics.checkpoints, partition, checkpoints),
            TopicPartition(self._topics.outcomes, partition, outcomes),
        ]
        if partition in self._assigned:
            self._consumer.incremental_unassign(places)
        self._consumer.incremental_assign(places)
        self._assigned.add(partition)
        self._paused.discard(partition)

    def poll(self, timeout: float) -> Polled | None:
        """Read messages.

        Parameters
        ----------
        timeout
            Seconds to wait for a first one.

        Returns
        -------
        Polled or None
            What was read; None if nothing came.

        Raises
        ------
        KafkaException
            The consumer cannot go on, or no broker answers any more.
        """
        first = self._consumer.poll(timeout)
        self._liveness.check(received=first is not None)
        if first is None:
            return None
        found = Polled()
        for message in (first, *self._consumer.consume(MAX_POLL_RECORDS - 1, 0.0)):
            error, partition = message.error(), message.partition() or 0
            of_outcomes = message.topic() == self._topics.outcomes
            if error is None:
                (found.outcomes if of_outcomes else found.checkpoints)[partition].append(message)
            elif not is_partition_end(error):
                raise_unless_retriable(message, self._kafka)
            elif of_outcomes:
                found.ends[partition] = message.offset() or 0
        return found

    def pause(self, partition: int) -> None:
        """Read no more of a partition for now."""
        if partition not in self._paused:
            self._consumer.pause(self._places(partition))
            self._paused.add(partition)

    def resume(self, partition: int) -> None:
        """Go on with a partition, if it was paused."""
        if partition in self._paused:
            self._consumer.resume(self._places(partition))
            self._paused.discard(partition)

    def _places(self, partition: int) -> list[TopicPartition]:
        return [
            TopicPartition(topic, partition) for topic in (self._topics.checkpoints, self._topics.outcomes)
        ]


class CommittedEnds:
    """Asks in the background where the committed outcomes of all partitions end.

    Parameters
    ----------
    kafka
        Where the topic is.
    topic
        The topic of outcomes.
    partitions
        How many partitions it has.
    admin
        A client that has reached the brokers.
    """

    def __init__(self, kafka: Kafka, topic: str, partitions: int, admin: Admin) -> None:
        self._kafka = kafka
        self._partitions = [PartitionId(topic, number) for number in range(partitions)]
        self._admin: Admin | None = admin
        self._call: tuple[float, BackgroundCall[dict[PartitionId, int]]] | None = None

    def ask(self) -> None:
        """Ask, unless an answer is waited for."""
        if self._call is None:
            self._call = time.monotonic(), BackgroundCall(self._stable_offsets)

    def answer(self) -> tuple[float, list[int]] | None:
        """Return when the brokers were asked, and the end of each partition; None while there is no answer.

        Raises
        ------
        KafkaException
            The brokers do not answer.
        ForksError
            No broker can be reached, or a right is missing.
        """
        if self._call is None:
            return None
        asked_at, call = self._call
        if not call.done:
            return None
        self._call = None
        try:
            found = call.result(0.0)
        except KafkaException:
            self._admin = None
            raise
        return asked_at, [*found.values()]

    def _stable_offsets(self) -> dict[PartitionId, int]:
        if self._admin is None:  # one that has seen all brokers go may not find them again
            self._admin = Admin(self._kafka)
        return last_stable_offsets(self._admin, self._partitions)
