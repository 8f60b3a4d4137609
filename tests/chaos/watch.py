"""What a read-committed reader sees while it happens: how far the pipeline is, how long recovery takes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from pipeline.kafka.clients import reader
from tests.integration.harness import DEADLINE, Pipeline

NOT_NOW = {
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


@dataclass
class Wound:
    """Partitions that a strike has hit, with the offset from which on a prediction shows recovery."""

    struck: float
    partitions: dict[int, int]


@dataclass
class Watch:
    """Follows the committed predictions."""

    pipeline: Pipeline
    predictions: int = 0
    recoveries: list[float] = field(default_factory=list)
    """Seconds from a strike until all of its partitions had a new prediction."""
    _wounds: list[Wound] = field(default_factory=list)

    def __post_init__(self) -> None:
        kafka, topics = self.pipeline.kafka, self.pipeline.topics
        self._places = [TopicPartition(topics.predictions, number, 0) for number in self._numbers]
        self._consumer: Consumer = reader(kafka)
        self._consumer.assign(self._places)
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
        self._consumer.close()
        self._group.close()

    def look(self, seconds: float) -> None:
        """Take what has been committed, waiting for it no longer than this."""
        for message in self._consumer.consume(10_000, seconds):
            if message.error() is not None:
                continue
            self.predictions += 1
            for wound in self._wounds:
                heals_from = wound.partitions.get(message.partition() or 0)
                if heals_from is not None and (message.offset() or 0) >= heals_from:
                    del wound.partitions[message.partition() or 0]
        now = time.monotonic()
        self.recoveries += [now - wound.struck for wound in self._wounds if not wound.partitions]
        self._wounds = [wound for wound in self._wounds if wound.partitions]

    def wait_for_recovery(self, struck: float, partitions: Iterable[int] | None = None) -> None:
        """Measure from then on until these partitions, or all, have a prediction that is not yet in the log.

        What lies in the log by now, committed or not, was written before the strike.
        """
        numbers = self._numbers if partitions is None else partitions
        places = [TopicPartition(self.pipeline.topics.predictions, number) for number in numbers]
        if places:
            self._wounds.append(Wound(struck, self._ends(places)))

    def _ends(self, places: list[TopicPartition]) -> dict[int, int]:
        """The partitions' ends; a broker that has just come up may not know its partitions yet.

        Each time by a new client: an old one goes on asking under the leader's epoch before the restart.
        """
        give_up = time.monotonic() + DEADLINE
        while True:
            latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it has no types
            client = AdminClient({"bootstrap.servers": self.pipeline.kafka.bootstrap, "log_level": 0})
            ends = client.list_offsets(dict.fromkeys(places, latest), request_timeout=5.0)
            try:
                return {place.partition: end.result().offset for place, end in ends.items()}
            except KafkaException:
                if time.monotonic() > give_up:
                    raise

    def group(self) -> str:
        """What the coordinator says of the group and its members; for whoever looks for a fault."""
        name = self.pipeline.kafka.group
        client = AdminClient({"bootstrap.servers": self.pipeline.kafka.bootstrap, "log_level": 0})
        try:
            described = client.describe_consumer_groups([name], request_timeout=5.0)[name].result()
        except KafkaException as error:
            return f"unknown ({error})"
        members = [f"{member.group_instance_id} {member.member_id}" for member in described.members]
        return f"{described.state.name} with {', '.join(members)}"

    def committed(self) -> dict[tuple[bool, int], int] | None:
        """The group's offsets by input (whether it is the labels) and partition; None without an answer."""
        topics = self.pipeline.topics
        places = [TopicPartition(topic, number) for topic in topics.inputs for number in self._numbers]
        try:
            answer = self._group.committed(places, 5.0)
        except KafkaException as error:
            if error.args[0].code() not in NOT_NOW:
                raise
            return None
        return {(place.topic == topics.labels, place.partition): max(0, place.offset) for place in answer}
