"""Send messages of the inputs again, and note what was sent in the same transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from pipeline.config.settings import Config
from pipeline.config.topics import LARGEST_DEAD_LETTER
from pipeline.errors import FencedError, TopicError
from pipeline.kafka.access.authorization import needing
from pipeline.kafka.access.errors import error_text, is_fenced, is_too_large
from pipeline.kafka.access.rights import REDRIVE, Resource, redrive_group
from pipeline.kafka.clients import group_consumer
from pipeline.kafka.committed import CommittedOffset, committed_offsets
from pipeline.kafka.deadline import close_consumer
from pipeline.kafka.group import GroupTransaction
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.producer import flush
from pipeline.records.dead_letter import record_size


class InputMessage(NamedTuple):
    """A message to write to an input."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: int


class RedriveGroup:
    """A group without members, whose offsets and their metadata say what was sent.

    Use as a context manager.

    Parameters
    ----------
    config
        The whole configuration.

    Raises
    ------
    AuthorizationError
        From any method: the brokers deny a right.
    """

    def __init__(self, config: Config) -> None:
        name = redrive_group(config.kafka.group)
        kafka = config.kafka.model_copy(update={"group": name, "instance": None})
        self._workers, self._worker = config.kafka, config.worker
        self._kafka = kafka
        self._consumer: Consumer = group_consumer(kafka, config.worker)
        self._transaction: GroupTransaction | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        close_consumer(self._consumer)

    def begin(self) -> None:
        """Take over from any other redrive of this group, which can send nothing more."""
        self._transaction = GroupTransaction(self._workers, self._worker, REDRIVE, LARGEST_DEAD_LETTER)

    def committed(self, partitions: Iterable[PartitionId]) -> dict[int, CommittedOffset]:
        """Return what was committed for partitions of one topic, by their numbers."""
        with needing(self._kafka, "Read", Resource.GROUP, self._kafka.group):
            found = committed_offsets(self._consumer, partitions)
        return {number: offset for number, by_topic in found.items() for offset in by_topic.values()}

    def send(self, messages: Iterable[InputMessage], offsets: Mapping[PartitionId, CommittedOffset]) -> None:
        """Write messages and commit offsets, all in one transaction.

        Parameters
        ----------
        messages
            The messages.
        offsets
            What is committed for each partition.

        Raises
        ------
        KafkaException
            The transaction was not committed, or that is not known.
        FencedError
            Another redrive of this group has begun.
        TopicError
            A message is too large for its input.
        """
        messages = [*messages]
        transaction = self._transaction
        assert transaction is not None, "nothing was begun"
        try:
            with transaction:
                for topic, partition, key, value, headers, timestamp in messages:
                    transaction.producer.produce(
                        topic, value, key, partition, headers=list(headers), timestamp=timestamp
                    )
                flush(transaction.producer, transaction.timeout)
                committed = [
                    TopicPartition(*partition, offset or 0, metadata=metadata)
                    for partition, (offset, metadata) in offsets.items()
                ]
                transaction.commit(self._consumer, committed)
        except KafkaException as error:
            if is_fenced(error):
                raise FencedError(
                    f"another redrive of group {self._workers.group} has begun ({error_text(error)}): "
                    "let it finish, then run this again if something is left"
                ) from error
            if is_too_large(error):
                raise _oversized(messages) from error
            raise


def _oversized(messages: Iterable[InputMessage]) -> TopicError:
    """Return what to do with messages one of which is too large for its input."""
    size, largest = max(
        ((record_size(each.key, each.value, each.headers), each) for each in messages),
        key=itemgetter(0),
    )
    origin = (largest.headers[-1][1] or b"").decode()
    return TopicError(
        f"{largest.topic} refuses the message of dead letter {origin} as too large: with the header that "
        f"names the dead letter it takes up to {size} bytes. Set max.message.bytes of {largest.topic} to "
        f"that, at most {LARGEST_DEAD_LETTER}, and run this again"
    )
