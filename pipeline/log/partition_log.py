"""The log of a partition: what workers have committed, in order, checked and decoded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Protocol, Self, TypeVar

import msgspec
from confluent_kafka import Message

from pipeline.config.topics import Topics
from pipeline.log.decoding import decode_record
from pipeline.log.outputs import (
    OutcomeChunk,
    PredictionChunk,
    decode_outcome_records,
    decode_outcomes,
    decode_prediction_chunk,
)
from pipeline.log.reader import LogReader, read_until
from pipeline.log.sequence import Kind, SequenceCheck
from pipeline.records.outcome_decoder import OutcomeDecoder
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Outcome

Record = TypeVar("Record")


class _Chunk(Protocol):
    """A slice of decoded records."""

    @property
    def sequences(self) -> list[int]: ...

    @property
    def offsets(self) -> list[int]: ...

    def below(self, stop: int) -> Self: ...


Chunk = TypeVar("Chunk", bound=_Chunk)


class PartitionLog:
    """The committed records of one partition of a pipeline's topics.

    All that reads outputs reads them here: a restore, a follower, and every command.

    Parameters
    ----------
    reader
        Reads the messages. It may serve several logs, one after the other.
    topics
        The names of the topics.
    partition
        The partition's number.

    Attributes
    ----------
    types
        The types of the stream's outputs.
    """

    def __init__(self, reader: LogReader, topics: Topics, partition: int) -> None:
        self.topics = topics
        self.partition = partition
        self.types = OutputTypes.of(topics.stream)
        self._reader = reader

    # What a state record counts, in sequence.

    def outcomes(self, offset: int, *, first: int, stop: int, later: bool = False) -> Iterator[OutcomeChunk]:
        """Read the outcomes that a state record counts, decoded to columns.

        Parameters
        ----------
        offset
            Where to begin.
        first
            The sequence that the first of them may have, at most.
        stop
            The number of outcomes that the state record counts.
        later
            Whether there may be others behind them, because workers go on: they are left out.

        Yields
        ------
        OutcomeChunk
            The next outcomes; an empty slice while some are waited for, which an open transaction hides.

        Raises
        ------
        StateError
            A record is missing or one too many, or was not written by a worker.
        """
        decode = partial(decode_outcomes, OutcomeDecoder(self.types))
        chunks = map(decode, self._reader.read(self.topics.outcomes, self.partition, offset))
        return self._in_sequence("outcome", chunks, first, stop, later=later)

    def outcome_records(self, stop: int) -> Iterator[Outcome]:
        """Read the first outcomes, an object for each, while workers may go on; raise as `outcomes`."""
        slices = self._reader.read(self.topics.outcomes, self.partition, 0)
        chunks = (decode_outcome_records(self.types, messages) for messages in slices)
        for chunk in self._in_sequence("outcome", chunks, 0, stop, later=True):
            yield from chunk.records

    def predictions(
        self, offset: int, *, first: int, stop: int, spill_below: int = 0, later: bool = False
    ) -> Iterator[PredictionChunk]:
        """Read the predictions that a state record counts.

        Parameters
        ----------
        offset
            Where to begin.
        first
            The sequence that the first of them may have, at most.
        stop
            The number of predictions that the state record counts.
        spill_below
            No feature is decoded of predictions below this sequence.
        later
            Whether there may be others behind them, because workers go on: they are left out.

        Yields
        ------
        PredictionChunk
            The next predictions; an empty slice while some are waited for, as above.

        Raises
        ------
        StateError
            A record is missing or one too many, or was not written by a worker.
        """
        slices = self._reader.read(self.topics.predictions, self.partition, offset)
        chunks = (decode_prediction_chunk(self.types, messages, spill_below) for messages in slices)
        return self._in_sequence("prediction", chunks, first, stop, later=later)

    def _in_sequence(
        self, kind: Kind, chunks: Iterable[Chunk], first: int, stop: int, *, later: bool
    ) -> Iterator[Chunk]:
        check = SequenceCheck(kind, self.partition, first, stop)
        for chunk in read_until(chunks, lambda: check.left, self._reader.patience):
            counted = chunk.below(stop) if later else chunk
            check.add(counted.sequences, counted.offsets)
            yield counted
            if later and check.left <= 0:
                return
        check.finish()

    # Records, one by one.

    def records(
        self, topic: str, decoder: msgspec.json.Decoder[Record], offset: int = 0
    ) -> Iterator[tuple[int, Record]]:
        """Read the records of a topic from an offset to the end at that moment, each with its offset.

        Raises
        ------
        StateError
            A record was not written by a worker.
        """
        for message in self.messages(topic, offset):
            yield message.offset() or 0, decode_record(decoder, message)

    # Messages as they are.

    def slices(self, topic: str, offset: int = 0) -> Iterator[list[Message]]:
        """Read the messages of a topic from an offset to the end at that moment, in slices."""
        for messages in self._reader.read(topic, self.partition, offset):
            if not messages:
                return
            yield messages

    def messages(self, topic: str, offset: int = 0, stop: int | None = None) -> Iterator[Message]:
        """Read the messages of a topic from an offset to the end at that moment, or to another offset."""
        for messages in self.slices(topic, offset):
            for message in messages:
                if stop is not None and (message.offset() or 0) >= stop:
                    return
                yield message

    def whole(self, topic: str, offsets: range) -> Iterator[list[Message]]:
        """Read the messages of a range to its very end, in slices: see `LogReader.read_range`."""
        return self._reader.read_range(topic, self.partition, offsets)

    def refuse_end_before(self, topic: str, offset: int, partition: int | None = None) -> None:
        """Raise `StateError` if a topic ends before an offset: see `LogReader.refuse_end_before`."""
        self._reader.refuse_end_before(topic, self.partition if partition is None else partition, offset)

    def at(self, topic: str, offset: int) -> Message:
        """Read the message at an offset: see `LogReader.at`."""
        return self._reader.at(topic, self.partition, offset)

    def last(
        self, topic: str, offsets: range, count: int, wanted: Callable[[Message], bool] = lambda _: True
    ) -> list[Message]:
        """Read the last messages of a topic.

        Not every offset has one: some belong to markers of transactions, and to messages that were aborted
        or compacted away. So this begins ever earlier, until it finds enough.

        Parameters
        ----------
        topic
            The topic's name.
        offsets
            The offsets to read: see `pipeline.log.ranges.Watermarks.ranges`.
        count
            Messages to return, at most.
        wanted
            Whether a message counts.

        Returns
        -------
        list of Message
            In the order of their offsets.
        """
        reach = 2 * count + 8
        while True:
            begin = max(offsets.start, offsets.stop - reach)
            found = deque(filter(wanted, self.messages(topic, begin)), maxlen=count)
            if len(found) == count or begin == offsets.start:
                return list(found)
            reach *= 4

    def empty(self, topic: str) -> bool:
        """Return whether a topic has no committed record: see `LogReader.empty`."""
        return self._reader.empty(topic, self.partition)

    # Live tables, whose partitions may be others.

    def table_partition(self, topic: str) -> int:
        """Return which partition of a table's topic this partition reads."""
        return self._reader.table_partition(topic, self.partition)

    def table(self, name: str) -> Iterator[Message]:
        """Read the messages of a live table to the end at that moment."""
        topic = self.topics.table(name)
        return self._reader.read_to_end(topic, self.table_partition(topic))

    def table_below(self, topic: str, number: int, end: int) -> Iterator[tuple[list[Message], int]]:
        """Read the messages of a live table that were applied.

        Parameters
        ----------
        topic, number
            The topic and the partition.
        end
            The offset up to which they were applied. Compaction may have taken away any of them.

        Yields
        ------
        list of Message, int
            Messages, of which the last may lie behind the end; and the offsets that are left to read.
        """
        read = 0

        def left() -> int:
            return end - max(read, self._reader.end)

        for messages in read_until(self._reader.read(topic, number), left, self._reader.patience):
            if messages:
                read = (messages[-1].offset() or 0) + 1
            yield messages, left()
            if left() <= 0:
                return
