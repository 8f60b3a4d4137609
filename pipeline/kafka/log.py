"""Read a topic's committed records from an offset to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from pipeline.config.tree import Kafka
from pipeline.errors import StateError
from pipeline.kafka.clients import groupless_consumer
from pipeline.kafka.errors import is_partition_end, raise_unless_retriable
from pipeline.kafka.liveness import Liveness
from pipeline.kafka.retries import BROKER_TIMEOUT

Record = TypeVar("Record")

MAX_POLL_RECORDS = 500
"""Messages handed over at once, at most: what they are decoded to then stays in the processor's cache."""
FETCH_MAX_WAIT_MS = 10
"""Milliseconds that a fetch at the end may take; going to another topic waits for it, too."""
DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError)
"""What decoding raises for a record that no worker wrote."""


class LogReader:
    """Reads single partitions of topics, from any offset, as far as they are committed.

    Use as a context manager, or `close` it.

    Parameters
    ----------
    kafka
        Where to read.
    patience
        Seconds to wait for records that are known to be there, while an open transaction hides them.
    """

    def __init__(self, kafka: Kafka, patience: float = 0.0) -> None:
        self.patience = patience
        self._consumer: Consumer = groupless_consumer(kafka, FETCH_MAX_WAIT_MS)
        self._known_topics: set[str] = set()

    def __enter__(self) -> LogReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()

    def read(self, topic: str, partition: int, offset: int = OFFSET_BEGINNING) -> Iterator[list[Message]]:
        """Messages from an offset on, in slices; at the end an empty slice, again each tenth of a second.

        It never ends by itself, since more may be committed: the caller stops at an empty slice, or
        goes on to wait for more. Nothing is yielded for longer than a tenth of a second only while
        the broker does not answer.

        Raises
        ------
        KafkaException
            The partition cannot be read, or no broker answers any more: at its end, what comes after it
            cannot be known then.
        """
        if topic not in self._known_topics:  # else librdkafka looks for the topic only a second later
            self._consumer.list_topics(topic, BROKER_TIMEOUT)
            self._known_topics.add(topic)
        place = TopicPartition(topic, partition, offset)
        self._consumer.assign([place])
        pulse = Liveness(self._consumer, topic)
        at_end = False  # the client tells of it once
        while True:
            messages = []
            first = self._consumer.poll(0.1)  # consume() alone would wait for a slice to be full
            pulse.check(received=first is not None)
            if first is None:
                if at_end:
                    self._consumer.get_watermark_offsets(
                        place, BROKER_TIMEOUT
                    )  # fails while the broker is away
                    yield []
                continue
            for message in (first, *self._consumer.consume(MAX_POLL_RECORDS - 1, 0.0)):
                error = message.error()
                if error is None:
                    messages.append(message)
                    at_end = False
                elif is_partition_end(error):
                    at_end = True
                else:
                    raise_unless_retriable(error)
            if messages:
                yield messages
            if at_end:
                yield []

    def read_to_end(self, topic: str, partition: int, offset: int = OFFSET_BEGINNING) -> Iterator[Message]:
        """Messages from an offset to the end as it is when it is reached."""
        for messages in self.read(topic, partition, offset):
            if not messages:
                return
            yield from messages

    def empty(self, topic: str, partition: int) -> bool:
        """Whether nothing is committed.

        Where begin and end are the same there is nothing; where they are not, it may all have been aborted.
        """
        place = TopicPartition(topic, partition)
        low, high = self._consumer.get_watermark_offsets(place, BROKER_TIMEOUT)
        return low == high or next(self.read_to_end(topic, partition), None) is None

    def at(self, topic: str, partition: int, offset: int) -> Message:
        """The committed message at an offset.

        Raises
        ------
        StateError
            If there is none, or none any more, also not after a transaction that may hide it has ended.
        """
        begin = time.monotonic()
        for messages in self.read(topic, partition, offset):
            if messages and messages[0].offset() == offset:
                return messages[0]
            if messages or time.monotonic() - begin > self.patience:
                break
        raise StateError(f"{topic} has no record at offset {offset} of partition {partition}")


def decode_record(decoder: msgspec.json.Decoder[Record], message: Message) -> Record:
    """The record that a worker wrote.

    Raises
    ------
    StateError
        If no worker can have written it.
    """
    try:
        return decoder.decode(message.value() or b"")
    except DECODE_ERRORS as error:
        raise StateError(
            f"{message.topic()}, partition {message.partition()}, offset {message.offset()}: no worker wrote "
            f"this record: {error}. Something else writes to this topic"
        ) from error


def decode_records(decoder: msgspec.json.Decoder[Record], messages: Sequence[Message]) -> list[Record]:
    """The records that a worker wrote.

    Raises
    ------
    StateError
        If no worker can have written one of them: see `decode_record`.
    """
    decode = decoder.decode
    try:
        return [decode(message.value() or b"") for message in messages]
    except DECODE_ERRORS:
        return [decode_record(decoder, message) for message in messages]  # which of them, and why


def offsets_of(messages: Sequence[Message]) -> list[int]:
    """Where the messages are."""
    return [message.offset() or 0 for message in messages]


Chunk = TypeVar("Chunk")


class Records(NamedTuple, Generic[Record]):
    """A slice of a log, decoded."""

    records: list[Record]
    offsets: list[int]

    def __bool__(self) -> bool:
        return bool(self.records)


def read_decoded(
    log: LogReader, decoder: msgspec.json.Decoder[Record], topic: str, partition: int, offset: int
) -> Iterator[Records[Record]]:
    """Read records from an offset on, in the slices of `LogReader.read`.

    Raises
    ------
    StateError
        At a record that no worker wrote.
    """
    for messages in log.read(topic, partition, offset):
        yield Records(decode_records(decoder, messages), offsets_of(messages))


def read_until(slices: Iterable[Chunk], left: Callable[[], int], patience: float) -> Iterator[Chunk]:
    """Slices as `LogReader.read` gives them, up to the end.

    They go past it as long as records known to be there are hidden by a transaction, at most for `patience`
    seconds.
    """
    begin = time.monotonic()
    for each in slices:
        if each:
            begin = time.monotonic()
        elif left() <= 0 or time.monotonic() - begin > patience:
            return
        yield each
