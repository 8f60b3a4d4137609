"""What partitions publish for one another, read beside the inputs and never waited for."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import structlog
from confluent_kafka import Consumer, TopicPartition

from pipeline.config.tree import Config, Kafka
from pipeline.kafka.clients import groupless_consumer
from pipeline.kafka.errors import raise_unless_retriable
from pipeline.kafka.liveness import Liveness
from pipeline.kafka.log import decode_record
from pipeline.kafka.retries import BROKER_TIMEOUT
from pipeline.kafka.topics import Topics
from pipeline.records.outputs import Share
from pipeline.task.sharing import Inbox

MAX_MESSAGES = 1_000
"""Messages taken at once, at most."""

_SHARES = msgspec.json.Decoder(Share)
_log = structlog.get_logger()


class Exchange:
    """Reads what partitions have shared for those of a worker.

    One consumer serves them all. Where they stand differs, and one that holds enough wants no more for a
    while, so it goes back to where the first of them wants to go on; the others pass over what they have.

    Parameters
    ----------
    kafka
        Where to read.
    topic
        The topic's name.
    partitions
        How many it has.
    """

    def __init__(self, kafka: Kafka, topic: str, partitions: int) -> None:
        self._consumer: Consumer = groupless_consumer(kafka)
        self._topic = topic
        self._partitions = range(partitions)
        self._liveness = Liveness(self._consumer, topic)
        self._positions: dict[int, int] = {}
        """By partition that is read, where the next message is to come from."""

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()

    def poll(self, inboxes: Collection[Inbox]) -> None:
        """Hand over what is there, without waiting.

        Raises
        ------
        KafkaException
            The consumer reads no more, or no broker answers it.
        StateError
            A record is there that no worker wrote.
        """
        self._seek(inboxes)
        messages = self._consumer.consume(MAX_MESSAGES, 0.0) if self._positions else []
        self._liveness.check(received=bool(messages))
        for message in messages:
            error = message.error()
            if error is not None:
                raise_unless_retriable(error)
                continue
            share, offset = decode_record(_SHARES, message), message.offset() or 0
            self._positions[share.partition] = offset + 1
            for inbox in inboxes:
                inbox.offer(share, offset, len(message.value() or b""))

    def _seek(self, inboxes: Collection[Inbox]) -> None:
        positions = {}
        for partition in self._partitions:
            wanted = [inbox.next_offset(partition) for inbox in inboxes]
            known = [offset for offset in wanted if offset is not None]
            if known:
                first = min(known)
                positions[partition] = min(first, self._positions.get(partition, first))
        if positions == self._positions:
            return
        for partition in positions.keys() - self._positions.keys():
            self._warn_if_deleted(partition, positions[partition])
        self._positions = positions
        self._consumer.assign(
            [TopicPartition(self._topic, partition, offset) for partition, offset in positions.items()]
        )

    def _warn_if_deleted(self, partition: int, wanted: int) -> None:
        """Say if retention has deleted what was not yet taken over: the client goes on with what is left."""
        begin, _ = self._consumer.get_watermark_offsets(
            TopicPartition(self._topic, partition), BROKER_TIMEOUT
        )
        if begin > wanted:
            _log.warning(
                "shared outcomes were deleted before they were read",
                of=partition,
                wanted=wanted,
                begins=begin,
            )


def make_exchange(config: Config, partitions: int) -> Exchange | None:
    """What brings what other partitions share, if that is wanted and there are others."""
    if config.sharing.interval is None or partitions == 1:
        return None
    return Exchange(config.kafka, Topics(config.kafka.prefix).shared, partitions)
