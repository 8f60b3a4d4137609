"""A transaction in which the only member of a group writes records and commits the group's offsets."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, TopicPartition

from pipeline.config.tree import Config
from pipeline.errors import StateError
from pipeline.kafka.clients import transactional_producer
from pipeline.kafka.deadline import BackgroundCall
from pipeline.kafka.errors import is_membership_change
from pipeline.kafka.producer import abort_if_required
from pipeline.kafka.retries import COORDINATOR_TIMEOUT


class GroupTransaction:
    """One transaction with a producer of its own.

    Use as a context manager: entering begins the transaction, and an error aborts it.

    Parameters
    ----------
    config
        Whole configuration.
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

    def __init__(self, config: Config, instance: str, largest_message: int) -> None:
        self.timeout = config.worker.transaction_timeout / 1000
        """Seconds for each step."""
        self.producer = transactional_producer(config, instance, largest_message)
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
