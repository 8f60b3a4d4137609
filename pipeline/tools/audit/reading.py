"""Read the committed checkpoint of a partition, and its records, from Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.errors import StateError
from pipeline.kafka.committed import position_of
from pipeline.kafka.group import CommittedOffsets
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.output_values import OutputValues
from pipeline.kafka.types import ConsumerRecord
from pipeline.log.partition_log import PartitionLog
from pipeline.log.reader import LogReader, Meter
from pipeline.records.dead_letter import read_dead_letter
from pipeline.records.inputs import RawMessage
from pipeline.recovery.signature import StateSigner
from pipeline.recovery.state_reader import read_state, snapshot_bytes
from pipeline.task.state import State
from pipeline.tools.audit.committed_view import View
from pipeline.tools.audit.differences import AuditResult
from pipeline.tools.audit.topic_records import DeadLetterMessage, PartitionRecords, TableRecords


class CommittedCheckpoint(NamedTuple):
    """The state record and the snapshot from which a worker would restore the partition.

    Attributes
    ----------
    state_offset
        Offset of the state record in the checkpoints topic.
    state
        State record.
    snapshot
        Bytes of the snapshot that the state record refers to; None if it refers to none, or to one that
        cannot be read.
    """

    state_offset: int
    state: State
    snapshot: bytes | None


def read_checkpoint(
    log: PartitionLog,
    reader: Reader,
    committed: CommittedOffsets,
    result: AuditResult,
    *,
    signer: StateSigner | None = None,
) -> CommittedCheckpoint | None:
    """Read the state record and the snapshot that the committed offsets of a partition lead to.

    Parameters
    ----------
    log
        The log of the partition, from which single records are read.
    reader
        Reader of whole topics of the partition.
    committed
        Committed offsets of the group, by input topic.
    result
        Result to add differences to, also if the checkpoint cannot be read.
    signer
        Checks the MAC of the state record; None where `checkpoint.key` is not set.

    Returns
    -------
    CommittedCheckpoint or None
        None if nothing was committed, or if no worker committed it.
    """
    topics = log.topics
    try:
        position = position_of(
            log.partition, committed, topics, lambda partition: reader.log_start_offset(partition.topic)
        )
        if position.state_offset is None:
            _check_no_outputs(reader, topics, result)
            return None
        state = read_state(log, position, signer)
    except StateError as error:
        expected = "offsets and a state record that a worker committed together"
        result.add_difference(topics.checkpoints, None, expected, str(error))
        return None
    _check_no_later_records(log, reader, position.state_offset, result)
    return CommittedCheckpoint(position.state_offset, state, _snapshot(log, state, result))


def _check_no_outputs(reader: Reader, topics: Topics, result: AuditResult) -> None:
    """Check that the outputs are empty, as they are before the first commit."""
    for topic in topics.outputs:
        if topic == topics.shared:  # retention may have deleted it, and outcomes hold a copy
            continue
        for source in reader.sources(topic, reader.stable_offset(topic)).items:
            expected = "no record, since the group has committed no offsets"
            result.add_difference(topic, source.offset, expected, f"key {source.key!r}")


def _check_no_later_records(
    log: PartitionLog, reader: Reader, state_offset: int, result: AuditResult
) -> None:
    """Check that the checkpoints topic ends with the state record, the last record of a transaction."""
    topic = log.topics.checkpoints
    for message in log.messages(topic, state_offset + 1, reader.stable_offset(topic)):
        expected = f"nothing after the state record that is committed, at {state_offset}"
        result.add_difference(topic, message.offset(), expected, f"key {message.key()!r}")


def _snapshot(log: PartitionLog, state: State, result: AuditResult) -> bytes | None:
    if state.snapshot is None:
        return None
    result.checked["snapshots read, with their SHA-256"] += 1
    try:
        return snapshot_bytes(log, state.snapshot)
    except StateError as error:
        expected = f"a snapshot with SHA-256 {state.snapshot.sha256}"
        result.add_difference(log.topics.checkpoints, state.snapshot.chunks[0], expected, str(error))
        return None


class Reader:
    """Reader of one partition of any topic, up to the end of the view.

    Each topic is read with a client of its own, so that topics can be read side by side.

    Parameters
    ----------
    kafka
        Connection of the topics.
    topics
        Names of the topics.
    view
        Offsets to read.
    partition
        Number of the partition.
    meter
        Counter of the records.
    """

    def __init__(self, kafka: Kafka, topics: Topics, view: View, partition: int, meter: Meter) -> None:
        self._values = OutputValues(topics)
        self._topics = topics
        self.partition = partition
        self._kafka = kafka
        self._view = view
        self._meter = meter

    def log_start_offset(self, topic: str) -> int:
        """Return the first offset of a topic that retention has not deleted."""
        return self._view.ranges[PartitionId(topic, self.partition)].start

    def stable_offset(self, topic: str) -> int:
        """Return the offset below which no record was written after the group's offsets."""
        return self._view.stable_offsets[PartitionId(topic, self.partition)]

    def sources(self, topic: str, stop: int | None = None) -> PartitionRecords[RawMessage]:
        """Return the records of a topic below an offset, or all of the view."""
        sources = map(RawMessage.of, self._messages(topic, stop))
        return PartitionRecords(sources, self.log_start_offset(topic), self.stable_offset(topic))

    def table(self, topic: str) -> TableRecords:
        """Return the records of a live table's topic that the view has."""
        own = PartitionId(topic, self.partition)
        several = PartitionId(topic, 1) in self._view.ranges
        read = own if several else PartitionId(topic, 0)
        return TableRecords(map(RawMessage.of, self._messages_of(read, None)), reports=read == own)

    def dead_letters(self, topic: str) -> PartitionRecords[DeadLetterMessage]:
        """Return the dead letters of the view."""
        messages = (
            DeadLetterMessage(RawMessage.of(message), read_dead_letter(message))
            for message in self._messages(topic, None)
        )
        return PartitionRecords(messages, self.log_start_offset(topic), self.stable_offset(topic))

    def _messages(self, topic: str, stop: int | None) -> Iterator[ConsumerRecord]:
        return self._messages_of(PartitionId(topic, self.partition), stop)

    def _messages_of(self, partition: PartitionId, stop: int | None) -> Iterator[ConsumerRecord]:
        offsets = self._view.ranges[partition]
        end = offsets.stop if stop is None else min(stop, offsets.stop)
        if offsets.start >= end:
            return
        with LogReader(self._kafka, values=self._values, meter=self._meter) as reader:
            log = PartitionLog(reader, self._topics, partition.partition)
            yield from log.messages(partition.topic, stop=end)
