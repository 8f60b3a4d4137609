"""Read a topic's committed records from an offset to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from pipeline.config.settings import Kafka
from pipeline.errors import StateError
from pipeline.kafka.access.errors import BROKER_TIMEOUT, is_partition_end
from pipeline.kafka.clients import groupless_consumer, raise_unless_retriable
from pipeline.kafka.deadline import BackgroundCall
from pipeline.kafka.liveness import Liveness
from pipeline.kafka.outage import await_broker, outlast
from pipeline.kafka.output_values import PLAIN, OutputValues
from pipeline.kafka.topics import table_partition

MAX_POLL_RECORDS = 2_000
"""Messages in a slice, at most: so many that the fixed costs of a slice do not count."""
END_PATIENCE = 10.0
"""Seconds in which a new leader learns where its partition ends."""
FETCH_MAX_WAIT_MS = 10
"""Milliseconds that a fetch at the end may take; a change to another topic waits for it too."""

Answer = TypeVar("Answer")
Chunk = TypeVar("Chunk")


class Meter:
    """Adds up how many messages several readers have read.

    Parameters
    ----------
    progress
        Function to call with the number so far.
    """

    def __init__(self, progress: Callable[[int], None]) -> None:
        self._progress = progress
        self._read = 0

    def __call__(self, messages: int) -> None:
        """Count messages."""
        self._read += messages
        self._progress(self._read)


class LogReader:
    """Reads the committed messages of one partition at a time, from any offset.

    Use as a context manager, or `close` it.

    Parameters
    ----------
    kafka
        Where to read.
    patience
        Seconds to wait for records that are known to be there, while an open transaction hides them.
    values
        Makes JSON of values that are not; by default all are left as they are.
    meter
        Called with the number of messages of each slice that is read.
    outlast
        Whether brokers that go away are waited for. A worker and a follower do so elsewhere: they have other
        things to do meanwhile.

    Attributes
    ----------
    end
        Offset at which `read` has met the end of its partition; -1 while it has not. A leader that is new may
        say for a moment that a partition ends earlier than it does.
    """

    def __init__(
        self,
        kafka: Kafka,
        patience: float = 0.0,
        values: OutputValues = PLAIN,
        meter: Callable[[int], None] = lambda _: None,
        *,
        outlast: bool = True,
    ) -> None:
        self._outlast = outlast
        self._values = values
        self._meter = meter
        self.patience = patience
        self.end = -1
        self._kafka = kafka
        self._connect()

    def _connect(self) -> None:
        self._consumer: Consumer = groupless_consumer(self._kafka, FETCH_MAX_WAIT_MS)
        self._known_topics: set[str] = set()

    def _reconnect(self) -> None:
        BackgroundCall(self._consumer.close)  # which may wait for brokers that were there before
        self._connect()

    def _ask(self, request: Callable[[Consumer], Answer]) -> Answer:
        """Return the answer to a request that changes nothing."""
        if not self._outlast:
            return request(self._consumer)
        return outlast(self._kafka, lambda: request(self._consumer), self._reconnect)

    def __enter__(self) -> LogReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def read(self, topic: str, partition: int, offset: int = OFFSET_BEGINNING) -> Iterator[list[Message]]:
        """Read messages from an offset on, in slices.

        The iterator never ends by itself, since more may be committed: the caller stops at an empty slice,
        or goes on to wait for more.

        Parameters
        ----------
        topic
            The topic's name.
        partition
            The partition's number.
        offset
            Where to begin.

        Yields
        ------
        list of Message
            Messages in the order of their offsets; an empty list at the end, again every tenth of a second.

        Raises
        ------
        KafkaException
            The partition cannot be read; or no broker answers any more, and none is waited for.
        """
        while True:
            try:
                for messages in self._read(topic, partition, offset):
                    if messages:
                        offset = (messages[-1].offset() or 0) + 1
                    yield self._values.converted(topic, messages)
            except KafkaException as error:
                if not self._outlast:
                    raise
                await_broker(self._kafka, error)
                self._reconnect()

    def _read(self, topic: str, partition: int, offset: int) -> Iterator[list[Message]]:
        """Read as `read` does, as long as brokers answer."""
        if topic not in self._known_topics:  # without it librdkafka asks for the topic a second later
            self._consumer.list_topics(topic, BROKER_TIMEOUT)
            self._known_topics.add(topic)
        topic_partition = TopicPartition(topic, partition, offset)
        self._consumer.assign([topic_partition])
        self.end = -1
        liveness = Liveness(self._consumer, topic)
        at_end = False  # the client reports the end once
        while True:
            messages = []
            first = self._consumer.poll(0.1)  # consume() alone would wait for a full slice
            liveness.check(received=first is not None)
            if first is None:
                if at_end:
                    # Fails while no broker answers.
                    self._consumer.get_watermark_offsets(topic_partition, BROKER_TIMEOUT)
                    yield []
                continue
            for message in (first, *self._consumer.consume(MAX_POLL_RECORDS - 1, 0.0)):
                error = message.error()
                if error is None:
                    messages.append(message)
                    at_end = False
                elif is_partition_end(error):
                    at_end, self.end = True, message.offset() or 0
                else:
                    raise_unless_retriable(message, self._kafka)
            if messages:
                self._meter(len(messages))
                yield messages
            if at_end:
                yield []

    def read_to_end(self, topic: str, partition: int, offset: int = OFFSET_BEGINNING) -> Iterator[Message]:
        """Read messages from an offset to the end of the partition at that moment: see `read`."""
        for messages in self.read(topic, partition, offset):
            if not messages:
                return
            yield from messages

    def read_range(self, topic: str, partition: int, offsets: range) -> Iterator[list[Message]]:
        """Read the messages of a range of offsets, in slices, to its very end.

        Use this where what comes after the range is never read again: `read` also says that it is at the end
        where a leader that is new says so too early.

        Parameters
        ----------
        topic
            The topic's name.
        partition
            The partition's number.
        offsets
            The range. All transactions below its end have ended.

        Yields
        ------
        list of Message
            Messages in the order of their offsets, at least one.

        Raises
        ------
        StateError
            The partition ends before the range does, for ten seconds.
        KafkaException
            The partition cannot be read, or no broker answers any more.
        """
        read = offsets.start

        def left() -> int:
            return offsets.stop - max(read, self.end)

        if not offsets:
            return
        for messages in read_until(self.read(topic, partition, offsets.start), left, END_PATIENCE):
            inside = [message for message in messages if (message.offset() or 0) < offsets.stop]
            if inside:
                read = (inside[-1].offset() or 0) + 1
                yield inside
            if len(inside) < len(messages) or left() <= 0:
                return
        if left() > 0:
            raise StateError(
                f"{topic} ends at offset {self.end} of partition {partition}, but had records up to "
                f"{offsets.stop}: it was deleted and created anew, or its brokers have lost records"
            )

    def empty(self, topic: str, partition: int) -> bool:
        """Return whether a partition has no committed record.

        Without offsets between the watermarks there is none; with some, all records may have been aborted.
        """
        topic_partition = TopicPartition(topic, partition)
        low, high = self._ask(lambda client: client.get_watermark_offsets(topic_partition, BROKER_TIMEOUT))
        return low == high or next(self.read_to_end(topic, partition), None) is None

    def table_partition(self, topic: str, partition: int) -> int:
        """Return which partition of a table's topic a partition reads: see `table_partition`."""
        return self._ask(lambda client: table_partition(client, topic, partition))

    def refuse_end_before(self, topic: str, partition: int, offset: int) -> None:
        """Raise `StateError` if a partition ends before an offset that was read.

        Raises
        ------
        StateError
            The topic was deleted and created anew.
        """
        wanted = TopicPartition(topic, partition)
        _, end = self._ask(lambda client: client.get_watermark_offsets(wanted, BROKER_TIMEOUT))
        if end < offset:
            raise StateError(
                f"{topic} ends at offset {end} of partition {partition}, but was read up to {offset}: it was "
                "deleted and created anew. Replay into new topics, with another kafka.prefix"
            )

    def at(self, topic: str, partition: int, offset: int) -> Message:
        """Read the committed message at an offset, waiting up to `patience` for open transactions.

        Raises
        ------
        StateError
            There is no such message, or no longer.
        """
        begin = time.monotonic()
        for messages in self.read(topic, partition, offset):
            if messages and messages[0].offset() == offset:
                return messages[0]
            if messages or time.monotonic() - begin > self.patience:
                break
        raise StateError(f"{topic} has no record at offset {offset} of partition {partition}")


def read_until(slices: Iterable[Chunk], left: Callable[[], int], patience: float) -> Iterator[Chunk]:
    """Pass on slices of `LogReader.read` until nothing is left to read.

    Parameters
    ----------
    slices
        The slices.
    left
        Counts the records that are known to be there and were not yet read.
    patience
        Seconds to wait at the end for such records, while an open transaction hides them.

    Yields
    ------
    Chunk
        The slices, empty ones included.
    """
    begin = time.monotonic()
    for each in slices:
        if each:
            begin = time.monotonic()
        elif left() <= 0 or time.monotonic() - begin > patience:
            return
        yield each
