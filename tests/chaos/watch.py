"""What a read-committed reader sees while it happens: how far the pipeline is, how long recovery takes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from pipeline.kafka.access.groups import describe_group
from pipeline.kafka.clients import groupless_consumer
from pipeline.kafka.deadline import close_consumer
from tests.chaos.schedule import Fault
from tests.integration.harness import TIMEOUT, Pipeline

UNAVAILABLE = {
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._WAIT_COORD,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.REQUEST_TIMED_OUT,
}
"""What a broker that is away, or has just come up, answers to a question for the group's offsets."""

SETTLED = 1.0
"""Seconds within which a reader has what was committed."""


class Recovery(NamedTuple):
    """How long it took until partitions that a fault has hit had new predictions."""

    seconds: float
    """From the strike, or from the end of a network fault."""
    alone: bool
    """Whether no other fault was being recovered from, and none came before the end."""


@dataclass
class PendingRecovery:
    """Partitions that a strike has hit, with the offset from which on a prediction shows recovery."""

    fault: Fault
    struck: float
    partitions: dict[int, int]
    alone: bool
    begin: float = 0.0
    """What comes before this moment of the monotonic clock was committed before the strike."""


@dataclass
class Watch:
    """Follows the committed predictions."""

    pipeline: Pipeline
    predictions: int = 0
    recoveries: dict[Fault, list[Recovery]] = field(default_factory=lambda: defaultdict(list))
    """By fault."""
    _pending_recoveries: list[PendingRecovery] = field(default_factory=list)
    _alone: bool = False

    def __post_init__(self) -> None:
        kafka, topics = self.pipeline.kafka, self.pipeline.topics
        self._topic_partitions = [TopicPartition(topics.predictions, number, 0) for number in self._numbers]
        self._consumer: Consumer = groupless_consumer(kafka)
        self._consumer.assign(self._topic_partitions)
        self._group = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "group.id": kafka.group,  # only to ask for its offsets: it never joins
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )

    @property
    def _numbers(self) -> range:
        return range(self.pipeline.partitions)

    def close(self) -> None:
        """Let go of the connections."""
        close_consumer(self._consumer)
        close_consumer(self._group)

    def poll(self, seconds: float) -> None:
        """Take what has been committed, waiting for it no longer than this."""
        for message in self._consumer.consume(10_000, seconds):
            now = time.monotonic()
            if message.error() is not None:
                continue
            self.predictions += 1
            for pending in self._pending_recoveries:
                heals_from = pending.partitions.get(message.partition() or 0)
                if heals_from is not None and (message.offset() or 0) >= heals_from and now > pending.begin:
                    del pending.partitions[message.partition() or 0]
        now = time.monotonic()
        for pending in self._pending_recoveries:
            if not pending.partitions:
                self.recoveries[pending.fault].append(Recovery(now - pending.struck, pending.alone))
        self._pending_recoveries = [pending for pending in self._pending_recoveries if pending.partitions]

    @property
    def recovered(self) -> bool:
        """Whether all partitions that were hit have new predictions."""
        return not self._pending_recoveries

    def strike(self, *, alone: bool) -> None:
        """Note a new fault: what has not recovered by now does not recover from one fault alone."""
        self._alone = alone
        for pending in self._pending_recoveries:
            pending.alone = False

    def wait_for_news(self, fault: Fault, struck: float) -> None:
        """Measure from then on until all partitions have a prediction that comes more than a second later.

        The ends of the log cannot be asked for while brokers are away. A broker's death is noticed after
        nine seconds, and a reader has all that was committed before within one.
        """
        ends = dict.fromkeys(self._numbers, 0)
        self._pending_recoveries.append(PendingRecovery(fault, struck, ends, self._alone, struck + SETTLED))

    def wait_for_recovery(self, fault: Fault, struck: float, partitions: Iterable[int] | None = None) -> None:
        """Measure from then on until these partitions, or all, have a prediction that is not yet in the log.

        What lies in the log by now, committed or not, was written before the strike.
        """
        numbers = self._numbers if partitions is None else partitions
        topic_partitions = [TopicPartition(self.pipeline.topics.predictions, number) for number in numbers]
        if topic_partitions:
            ends = self._ends(topic_partitions)
            self._pending_recoveries.append(PendingRecovery(fault, struck, ends, self._alone))

    def _ends(self, topic_partitions: list[TopicPartition]) -> dict[int, int]:
        """The partitions' ends; a broker that has just come up may not know its partitions yet.

        Each time by a new client: an old one goes on asking under the leader's epoch before the restart.
        """
        give_up = time.monotonic() + TIMEOUT
        while True:
            latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it has no types
            client = AdminClient({"bootstrap.servers": self.pipeline.kafka.bootstrap, "log_level": 0})
            ends = client.list_offsets(dict.fromkeys(topic_partitions, latest), request_timeout=5.0)
            try:
                return {
                    topic_partition.partition: end.result().offset for topic_partition, end in ends.items()
                }
            except KafkaException:
                if time.monotonic() > give_up:
                    raise

    def group(self) -> str:
        """What the coordinator says of the group and its members; for whoever looks for a fault."""
        name = self.pipeline.kafka.group
        try:
            described = describe_group(self.pipeline.kafka, name, 5.0)
        except KafkaException as error:
            return f"unknown ({error})"
        members = [f"{member.group_instance_id} {member.member_id}" for member in described.members]
        return f"{described.state.name} with {', '.join(members)}"

    def committed(self) -> dict[tuple[bool, int], int] | None:
        """The group's offsets by input (whether it is the labels) and partition; None without an answer."""
        topics = self.pipeline.topics
        topic_partitions = [
            TopicPartition(topic, number) for topic in topics.inputs for number in self._numbers
        ]
        try:
            answer = self._group.committed(topic_partitions, 5.0)
        except KafkaException as error:
            if error.args[0].code() not in UNAVAILABLE:
                raise
            return None
        return {
            (topic_partition.topic == topics.labels, topic_partition.partition): max(
                0, topic_partition.offset
            )
            for topic_partition in answer
        }
