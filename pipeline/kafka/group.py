"""A consumer group as a whole: its offsets, its members, and transactions in its name."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Self, TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from pipeline.config.settings import Config, Kafka, Worker
from pipeline.config.topics import Topics
from pipeline.errors import StateError
from pipeline.kafka.access.authorization import AUTHORIZATION_ERRORS, denied, needing
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.errors import COORDINATOR_TIMEOUT, is_membership_change, timed_out
from pipeline.kafka.access.groups import describe_group
from pipeline.kafka.access.missing_rights import missing_rights
from pipeline.kafka.access.rights import Resource, Right, transactional_id
from pipeline.kafka.clients import group_consumer, transactional_producer
from pipeline.kafka.committed import CommittedOffset, committed_offsets
from pipeline.kafka.deadline import BackgroundCall, close_consumer
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.producer import abort_if_required
from pipeline.kafka.topics import partition_count

CommittedOffsets: TypeAlias = Mapping[str, CommittedOffset]
"""Committed offsets of one partition, by input topic."""

BUSY: Final = (
    "{who} of group {group}: stop every worker first. One with a name (kafka.instance) counts as a member "
    "until worker.session_timeout is over"
)


class ConsumerGroup:
    """The consumer group of a pipeline.

    Use as a context manager.

    Parameters
    ----------
    config
        Whole configuration. `kafka.instance` is ignored, because a worker may run under this name.
    topics
        Topics of the pipeline.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        Topics are missing, or not as they have to be.
    AuthorizationError
        The brokers deny a right.
    """

    def __init__(self, config: Config, topics: Topics) -> None:
        kafka = config.kafka.model_copy(update={"instance": None})
        self.config = config.model_copy(update={"kafka": kafka})
        self.topics = topics
        admin = Admin(kafka)
        # Without it, the client waits for the group's coordinator until its time is over.
        if missing := missing_rights(admin, [Right("Describe", Resource.GROUP, kafka.group)]):
            raise denied(kafka, missing)
        self.partitions = partition_count(admin, topics)
        """Number of partitions of each topic."""
        self._consumer: Consumer = group_consumer(self.config.kafka, self.config.worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        close_consumer(self._consumer)

    def committed_offsets(
        self, partitions: Iterable[int], timeout: float = COORDINATOR_TIMEOUT
    ) -> dict[int, dict[str, CommittedOffset]]:
        """Return the committed offsets of the inputs, by partition and topic.

        An open transaction that commits offsets is waited for.

        Parameters
        ----------
        partitions
            Numbers of the partitions.
        timeout
            Seconds to wait for the group's coordinator.

        Raises
        ------
        KafkaException
            If the group's coordinator does not answer in time.
        """
        wanted = [PartitionId(topic, number) for topic in self.topics.inputs for number in partitions]
        with self._needing("Describe"):
            return committed_offsets(self._consumer, wanted, timeout)

    @contextmanager
    def sole_member(self) -> Iterator[Consumer]:
        """Join the group as its only member, so that nobody else commits offsets.

        A worker that joins meanwhile waits for a rebalance. Its membership then makes a later commit of
        this member fail.

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

        member: Consumer = group_consumer(self.config.kafka, self.config.worker)
        member.subscribe(list(self.topics.inputs), on_assign=assign_paused)
        try:
            end = time.monotonic() + COORDINATOR_TIMEOUT
            while not assigned:
                message = member.poll(0.1)
                error = None if message is None else message.error()
                if error is not None and error.code() in AUTHORIZATION_ERRORS:
                    with self._needing("Read"):
                        raise KafkaException(error)
                if time.monotonic() > end:
                    raise timed_out(f"no assignment in group {self._name}")
            if len(assigned) < self.partitions * len(self.topics.inputs):
                raise StateError(BUSY.format(who="a worker has just become a member", group=self._name))
            yield member
        finally:
            close_consumer(member)

    def refuse_members(self) -> None:
        """Raise `StateError` if the group has members.

        Raises
        ------
        StateError
            If the group has members; it names them.
        """
        members = self._members()
        if members:
            raise StateError(BUSY.format(who=f"there are members ({', '.join(members)})", group=self._name))

    @property
    def _name(self) -> str:
        return self.config.kafka.group

    def _needing(self, operation: str) -> AbstractContextManager[None]:
        return needing(self.config.kafka, operation, Resource.GROUP, self._name)

    def _members(self) -> list[str]:
        try:
            with self._needing("Describe"):
                members = describe_group(self.config.kafka, self._name, COORDINATOR_TIMEOUT).members
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return []
            raise
        return [f"{member.group_instance_id or member.member_id} at {member.host}" for member in members]


class GroupTransaction:
    """One transaction with a producer of its own.

    Use as a context manager: entering begins the transaction, and an error aborts it.

    Parameters
    ----------
    kafka
        Where the group is.
    worker
        Its timeouts.
    instance
        Last part of the transactional id. An older producer of the same id can write nothing more.
    largest_message
        Size in bytes of the largest message that can be written.

    Raises
    ------
    KafkaException
        If the transaction was not committed, or if that is not known.
    StateError
        If the members of the group have changed. The transaction has changed nothing then.
    """

    def __init__(self, kafka: Kafka, worker: Worker, instance: str, largest_message: int) -> None:
        self.timeout = worker.transaction_timeout / 1000
        """Seconds for each step."""
        self.producer = transactional_producer(kafka, worker, instance, largest_message)
        name = transactional_id(kafka, instance)
        with needing(kafka, "Write", Resource.TRANSACTIONAL_ID, name):
            self.producer.init_transactions(COORDINATOR_TIMEOUT)

    def __enter__(self) -> GroupTransaction:
        self.producer.begin_transaction()
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if not isinstance(error, KafkaException):
            return
        abort_if_required(self.producer, error)
        if is_membership_change(error):
            raise StateError("a worker has joined meanwhile. Nothing has changed: stop it first") from error

    def commit(self, member: Consumer, offsets: list[TopicPartition]) -> None:
        """Commit the transaction together with the group's offsets.

        Parameters
        ----------
        member
            The only member of the group.
        offsets
            Offsets of all inputs, with their metadata.
        """
        membership = member.consumer_group_metadata()
        BackgroundCall(lambda: self.producer.send_offsets_to_transaction(offsets, membership)).result(
            self.timeout
        )
        self.producer.commit_transaction(self.timeout)
