"""The group's committed state, seen from outside, and the group itself, entered when nobody else is in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from pipeline.config.tree import Config
from pipeline.errors import ConfigError, StateError
from pipeline.kafka.clients import client_settings, group_consumer
from pipeline.kafka.committed import TIMEOUT, committed, committed_position
from pipeline.kafka.log import LogReader
from pipeline.kafka.topics import Topics, admin, partition_count
from pipeline.recovery.state_reader import read_state, snapshot_bytes
from pipeline.task.state import State

BUSY: Final = (
    "{who} of group {group}: stop every worker first. One with a name (kafka.instance) counts as a member "
    "until worker.session_timeout is over"
)


class CommittedState(NamedTuple):
    """A partition's last committed state record, and where it is."""

    offset: int
    state: State


class Group:
    """The consumer group of a pipeline.

    Use as a context manager.

    Parameters
    ----------
    config
        The whole configuration.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        Topics are missing, or not as they have to be.
    """

    def __init__(self, config: Config) -> None:
        kafka = config.kafka.model_copy(update={"instance": None})  # a worker may run under this name
        self.config = config.model_copy(update={"kafka": kafka})
        self.topics = Topics(kafka.prefix)
        self._admin = admin(client_settings(kafka))
        self.partitions = partition_count(self._admin, self.topics)
        self._consumer: Consumer = group_consumer(self.config)
        self.log = LogReader(kafka, config.worker.transaction_timeout / 1000 + 10.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()
        self._consumer.close()

    def committed_state(self, partition: int) -> CommittedState | None:
        """What the group continues from in a partition; None if nothing was committed yet.

        Raises
        ------
        ConfigError
            There is no such partition.
        StateError
            If what was committed is not a worker's, or its state record is gone.
        """
        if partition >= self.partitions:
            raise ConfigError(f"--partition {partition}: there are partitions 0 to {self.partitions - 1}")
        topic_partitions = [TopicPartition(topic, partition) for topic in self.topics.inputs]
        start = committed_position(
            committed(self._consumer, topic_partitions)[partition], self.topics, lambda _: 0
        )
        if start.state_offset is None:
            return None
        return CommittedState(start.state_offset, read_state(self.log, self.topics, partition, start))

    def all_committed_states(self) -> list[CommittedState]:
        """What the group continues from in each partition, so that nothing is installed beside one without.

        Raises
        ------
        StateError
            If nothing was committed in one yet, or as `committed_state`.
        """
        found = []
        for number in range(self.partitions):
            committed_state = self.committed_state(number)
            if committed_state is None:
                raise StateError(
                    f"nothing was committed for partition {number} yet, so no state there could keep workers "
                    "with other settings away. Let a worker run until each partition has had a message"
                )
            found.append(committed_state)
        return found

    def snapshot(self, partition: int) -> tuple[State, bytes]:
        """A partition's state record, and the snapshot that it names as it was written.

        Raises
        ------
        StateError
            If there is none, or it is damaged.
        """
        committed_state = self.committed_state(partition)
        if committed_state is None or committed_state.state.snapshot is None:
            raise StateError(
                f"group {self.config.kafka.group} has no snapshot of partition {partition} yet: a worker "
                "writes one after checkpoint.outcomes or checkpoint.interval, and when it stops"
            )
        return committed_state.state, snapshot_bytes(
            self.log, self.topics, partition, committed_state.state.snapshot
        )

    @contextmanager
    def sole_member(self) -> Iterator[Consumer]:
        """Enter the group as its only member, so that no offset is committed but by us.

        Whoever joins meanwhile waits, and then makes what we commit fail, or finds it committed.

        Raises
        ------
        StateError
            If there are other members.
        """
        self.refuse_members()
        assigned: list[TopicPartition] = []

        def assign_paused(consumer: Consumer, topic_partitions: list[TopicPartition]) -> None:
            consumer.assign(topic_partitions)
            consumer.pause(topic_partitions)
            assigned.extend(topic_partitions)

        member: Consumer = group_consumer(self.config)
        member.subscribe(list(self.topics.inputs), on_assign=assign_paused)
        try:
            end = time.monotonic() + TIMEOUT
            while not assigned:
                member.poll(0.1)
                if time.monotonic() > end:
                    raise KafkaException(
                        KafkaError(KafkaError._TIMED_OUT, f"no assignment in group {self._name}")
                    )
            if len(assigned) < self.partitions * len(self.topics.inputs):
                raise StateError(BUSY.format(who="a worker has just become a member", group=self._name))
            yield member
        finally:
            member.close()

    def refuse_members(self) -> None:
        """Make sure that the group has no members.

        Raises
        ------
        StateError
            Naming them.
        """
        members = self._members()
        if members:
            raise StateError(BUSY.format(who=f"there are members ({', '.join(members)})", group=self._name))

    @property
    def _name(self) -> str:
        return self.config.kafka.group

    def _members(self) -> list[str]:
        [description] = self._admin.describe_consumer_groups([self._name], request_timeout=TIMEOUT).values()
        try:
            members = description.result().members
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return []
            raise
        return [f"{member.group_instance_id or member.member_id} at {member.host}" for member in members]
