"""Read one partition of the outputs and its committed checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, cast

from confluent_kafka import Message, TopicPartition

from pipeline.config.tree import Kafka
from pipeline.errors import StateError
from pipeline.kafka.committed import committed_position
from pipeline.kafka.log import LogReader
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.topics import Topics
from pipeline.records.dead_letter import Headers, read_dead_letter
from pipeline.records.inputs import RawMessage
from pipeline.recovery.state_reader import read_state, snapshot_bytes
from pipeline.task.state import State
from pipeline.tools.audit.committed_view import View
from pipeline.tools.audit.differences import AuditResult
from pipeline.tools.audit.topic_records import DeadLetterMessage, PartitionRecords


class CommittedCheckpoint(NamedTuple):
    """What a restart would begin with.

    Attributes
    ----------
    state_offset
        Where the state record is.
    state
        The state record.
    snapshot
        The bytes of the snapshot that it names; None if it names none or they are not there.
    """

    state_offset: int
    state: State
    snapshot: bytes | None


def read_checkpoint(
    log: LogReader,
    reader: Reader,
    topics: Topics,
    committed: Mapping[str, TopicPartition],
    result: AuditResult,
) -> CommittedCheckpoint | None:
    """Read what the offsets of one partition lead to; what keeps from that is noted as a difference.

    Parameters
    ----------
    log
        To read single records with.
    reader
        Of the partition.
    topics
        Their names.
    committed
        The group's offsets, by input.
    ledger
        Where to note what differs.

    Returns
    -------
    Gathered or None
        None if nothing was committed, or not as a worker does it.
    """
    try:
        start = committed_position(
            dict(committed), topics, lambda place: reader.log_start_offset(place.topic)
        )
        if start.state_offset is None:
            _check_no_outputs(reader, topics, result)
            return None
        state = read_state(log, topics, reader.partition, start)
    except StateError as error:
        expected = "offsets and a state record that a worker committed together"
        result.add_difference(topics.checkpoints, None, expected, str(error))
        return None
    _check_no_later_records(log, reader, topics, start.state_offset, result)
    return CommittedCheckpoint(start.state_offset, state, _snapshot(log, reader, topics, state, result))


def _check_no_outputs(reader: Reader, topics: Topics, result: AuditResult) -> None:
    """Without committed offsets there is nothing that a worker wrote."""
    for topic in topics.outputs:
        if topic == topics.shared:  # what it holds may be gone, and is in outcomes
            continue
        for source in reader.sources(topic, reader.stable_offset(topic)).items:
            expected = "no record, since the group has committed no offsets"
            result.add_difference(topic, source.offset, expected, f"key {source.key!r}")


def _check_no_later_records(
    log: LogReader, reader: Reader, topics: Topics, state_offset: int, result: AuditResult
) -> None:
    """The state record is the last that a worker writes into a transaction."""
    topic = topics.checkpoints
    for message in log.read_to_end(topic, reader.partition, state_offset + 1):
        if (message.offset() or 0) >= reader.stable_offset(topic):
            return
        expected = f"nothing after the state record that is committed, at {state_offset}"
        result.add_difference(topic, message.offset(), expected, f"key {message.key()!r}")


def _snapshot(
    log: LogReader, reader: Reader, topics: Topics, state: State, result: AuditResult
) -> bytes | None:
    if state.snapshot is None:
        return None
    result.checked["snapshots read, with their SHA-256"] += 1
    try:
        return snapshot_bytes(log, topics, reader.partition, state.snapshot)
    except StateError as error:
        expected = f"a snapshot with SHA-256 {state.snapshot.sha256}"
        result.add_difference(topics.checkpoints, state.snapshot.chunks[0], expected, str(error))
        return None


PROGRESS_EVERY: Final = 500
"""Records between two words on how many have been read."""


class Meter:
    """Counts what is read.

    Parameters
    ----------
    told
        Called now and then with the records read so far.
    """

    def __init__(self, progress: Callable[[int], None]) -> None:
        self._progress = progress
        self._read = 0

    def count(self) -> None:
        """Count one."""
        self._read += 1
        if self._read % PROGRESS_EVERY == 0:
            self._progress(self._read)


class Reader:
    """Reads one partition of any topic as far as the view goes.

    Each reading has a client of its own, so that topics can be read side by side.

    Parameters
    ----------
    kafka
        Where to read.
    view
        How far.
    partition
        Which.
    meter
        Told of every record.
    """

    def __init__(self, kafka: Kafka, view: View, partition: int, meter: Meter) -> None:
        self.partition = partition
        self._kafka = kafka
        self._view = view
        self._meter = meter

    def log_start_offset(self, topic: str) -> int:
        """The first offset that retention has left."""
        return self._view.ranges[PartitionId(topic, self.partition)].start

    def stable_offset(self, topic: str) -> int:
        """Below this offset no record was written after the group's offsets were."""
        return self._view.stable_offset[PartitionId(topic, self.partition)]

    def sources(self, topic: str, stop: int | None = None) -> PartitionRecords[RawMessage]:
        """The records below an offset, or of all the view."""
        return PartitionRecords(
            map(_source, self._messages(topic, stop)), self.log_start_offset(topic), self.stable_offset(topic)
        )

    def dead_letters(self, topic: str) -> PartitionRecords[DeadLetterMessage]:
        """The dead letters."""
        dead_letter_message = (
            DeadLetterMessage(_source(message), read_dead_letter(message))
            for message in self._messages(topic, None)
        )
        return PartitionRecords(dead_letter_message, self.log_start_offset(topic), self.stable_offset(topic))

    def _messages(self, topic: str, stop: int | None) -> Iterator[Message]:
        offsets = self._view.ranges[PartitionId(topic, self.partition)]
        end = offsets.stop if stop is None else min(stop, offsets.stop)
        if offsets.start >= end:
            return
        with LogReader(self._kafka) as log:
            for message in log.read_to_end(topic, self.partition):
                if (message.offset() or 0) >= end:
                    return
                self._meter.count()
                yield message


def _source(message: Message) -> RawMessage:
    headers = cast(Headers, message.headers() or ())
    return RawMessage(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        message.key(),
        message.value(),
        headers,
    )
