"""What partitions publish for one another, read beside the inputs and never waited for."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from pipeline.config.tree import Config, Kafka
from pipeline.kafka.clients import reader
from pipeline.kafka.liveness import Pulse
from pipeline.kafka.log import decoded
from pipeline.kafka.topics import Topics
from pipeline.records.outputs import Share
from pipeline.task.sharing import Reception

AT_ONCE = 1_000
"""Messages taken at once, at most."""
TIMEOUT = 10.0
"""Seconds for a broker to say what a partition holds."""

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
        self._consumer: Consumer = reader(kafka)
        self._topic = topic
        self._partitions = range(partitions)
        self._pulse = Pulse(self._consumer, topic)
        self._positions: dict[int, int] = {}
        """By partition that is read, where the next message is to come from."""

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()

    def receive(self, receptions: Collection[Reception]) -> None:
        """Hand over what is there, without waiting.

        Raises
        ------
        KafkaException
            The consumer reads no more, or no broker answers it.
        StateError
            A record is there that no worker wrote.
        """
        self._go_where_wanted(receptions)
        messages = self._consumer.consume(AT_ONCE, 0.0) if self._positions else []
        self._pulse.feel(heard=bool(messages))
        for message in messages:
            error = message.error()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF and not error.retriable():
                    raise KafkaException(error)
                continue
            share, offset = decoded(_SHARES, message), message.offset() or 0
            self._positions[share.partition] = offset + 1
            for reception in receptions:
                reception.offer(share, offset, len(message.value() or b""))

    def _go_where_wanted(self, receptions: Collection[Reception]) -> None:
        positions = {}
        for partition in self._partitions:
            wanted = [reception.wants(partition) for reception in receptions]
            known = [offset for offset in wanted if offset is not None]
            if known:
                first = min(known)
                positions[partition] = min(first, self._positions.get(partition, first))
        if positions == self._positions:
            return
        for partition in positions.keys() - self._positions.keys():
            self._tell_what_is_gone(partition, positions[partition])
        self._positions = positions
        self._consumer.assign(
            [TopicPartition(self._topic, partition, offset) for partition, offset in positions.items()]
        )

    def _tell_what_is_gone(self, partition: int, wanted: int) -> None:
        """Say if retention has deleted what was not yet taken over: the client goes on with what is left."""
        begin, _ = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), TIMEOUT)
        if begin > wanted:
            _log.warning("what was shared is deleted", of=partition, wanted=wanted, begins=begin)


def exchange_of(config: Config, partitions: int) -> Exchange | None:
    """What brings what other partitions share, if that is wanted and there are others."""
    if config.sharing.interval is None or partitions == 1:
        return None
    return Exchange(config.kafka, Topics(config.kafka.prefix).shared, partitions)
