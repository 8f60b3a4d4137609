"""Read the outcomes that partitions share, beside the inputs; nothing waits for them."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import structlog
from confluent_kafka import Consumer, TopicPartition

from pipeline.config.settings import Kafka, Sharing
from pipeline.config.topics import Topics
from pipeline.kafka.access.errors import BROKER_TIMEOUT
from pipeline.kafka.clients import groupless_consumer, raise_unless_retriable
from pipeline.kafka.deadline import close_consumer
from pipeline.kafka.liveness import Liveness
from pipeline.log.decoding import decode_record
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Share
from pipeline.task.inbox import Inbox

MAX_MESSAGES = 1_000
"""Messages that one poll reads, at most."""

_log = structlog.get_logger()


class Exchange:
    """Reads shared outcomes into the inboxes of a worker's partitions.

    One consumer serves all inboxes. They are at different offsets, and a full inbox wants nothing for a
    while. So the consumer reads from the lowest offset that an inbox wants; the others skip what they have.

    Parameters
    ----------
    kafka
        Where to read.
    topic
        The name of the topic of shared outcomes.
    partitions
        How many partitions it has.
    shares
        Decodes its records.
    """

    def __init__(
        self, kafka: Kafka, topic: str, partitions: int, shares: msgspec.json.Decoder[Share]
    ) -> None:
        self._kafka = kafka
        self._shares = shares
        self._consumer: Consumer = groupless_consumer(kafka)
        self._topic = topic
        self._partitions = range(partitions)
        self._liveness = Liveness(self._consumer, topic)
        self._positions: dict[int, int] = {}
        """The offset of the next message, by partition that is read."""

    def close(self) -> None:
        """Close the connections."""
        close_consumer(self._consumer)

    def poll(self, inboxes: Collection[Inbox], timeout: float = 0.0) -> None:
        """Read into the inboxes what is there.

        Parameters
        ----------
        inboxes
            The inboxes of all running partitions.
        timeout
            Seconds to wait for a first message.

        Raises
        ------
        KafkaException
            The consumer cannot go on, or no broker answers it.
        StateError
            A record was not written by a worker.
        """
        self._seek(inboxes)
        messages = []
        if self._positions:
            messages = self._consumer.consume(1, timeout)
            messages += self._consumer.consume(MAX_MESSAGES, 0.0)
        self._liveness.check(received=bool(messages))
        for message in messages:
            error = message.error()
            if error is not None:
                raise_unless_retriable(message, self._kafka)
                continue
            share, offset = decode_record(self._shares, message), message.offset() or 0
            self._positions[share.partition] = offset + 1
            for inbox in inboxes:
                inbox.offer(share, offset, len(message.value() or b""))

    def _seek(self, inboxes: Collection[Inbox]) -> None:
        positions = {}
        for partition in self._partitions:
            offsets = [inbox.next_offset(partition) for inbox in inboxes]
            wanted = [offset for offset in offsets if offset is not None]
            if wanted:
                first = min(wanted)
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
        """Warn if retention has deleted outcomes before they were learned: the client skips to those left."""
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


def make_exchange(kafka: Kafka, sharing: Sharing, topics: Topics, partitions: int) -> Exchange | None:
    """Make the reader of shared outcomes; None if nothing is shared or there is one partition only."""
    if sharing.interval_for(partitions) is None:
        return None
    shares = OutputTypes.of(topics.stream).shares
    return Exchange(kafka, topics.shared, partitions, shares)
