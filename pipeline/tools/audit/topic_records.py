"""The records of a partition that an audit reads, and their decoding in the order of their sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

import msgspec

from pipeline.config.topics import Topics
from pipeline.records.dead_letter import DeadLetterHeaders
from pipeline.records.fields import Id
from pipeline.records.inputs import RawMessage
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from pipeline.records.slates import SlatePrediction
from pipeline.task.state import State
from pipeline.tools.audit.differences import AuditResult

Item = TypeVar("Item")


class DeadLetterMessage(NamedTuple):
    """A message of the dead-letter topic, and its parsed headers."""

    source: RawMessage
    dead_letter: DeadLetterHeaders


class PartitionRecords(NamedTuple, Generic[Item]):
    """The committed records of one topic's partition.

    Attributes
    ----------
    items
        Records in the order of their offsets.
    log_start_offset
        First offset that retention has not deleted.
    stable_offset
        No record below this offset was written after the state record.
    """

    items: Iterable[Item]
    log_start_offset: int
    stable_offset: int

    @property
    def complete(self) -> bool:
        """Whether retention has deleted no record."""
        return self.log_start_offset == 0


class TableRecords(NamedTuple):
    """The records of a live table's topic, in the partition that a partition of the inputs reads.

    Attributes
    ----------
    messages
        In the order of their offsets, as far as compaction has left them.
    reports
        Whether records that cannot be used are dead letters of this partition.
    """

    messages: Iterable[RawMessage]
    reports: bool


class AuditInput(NamedTuple):
    """Everything that an audit reads of one partition.

    Attributes
    ----------
    topics
        Names of the topics.
    state
        State record that was committed when the audit began.
    state_offset
        Offset of the state record in the checkpoints topic.
    snapshot
        Bytes of the snapshot that the state record refers to; None if it refers to none.
    """

    topics: Topics
    state: State
    state_offset: int
    snapshot: bytes | None
    interactions: PartitionRecords[RawMessage]
    labels: PartitionRecords[RawMessage]
    predictions: PartitionRecords[RawMessage]
    outcomes: PartitionRecords[RawMessage]
    dead_letters: PartitionRecords[DeadLetterMessage]
    requests: PartitionRecords[RawMessage] = PartitionRecords((), 0, 0)
    """Label requests; empty without a label policy."""
    tables: Mapping[str, TableRecords] = MappingProxyType({})
    """Records of the live tables, by name."""
    score_tables: Mapping[str, TableRecords] = MappingProxyType({})
    """The same once more, for what followers have answered."""


Record = TypeVar("Record", Prediction, SlatePrediction, Outcome, LabelRequest)


class DecodedRecord(NamedTuple, Generic[Record]):
    """A record, and the message that it was decoded from."""

    record: Record
    source: RawMessage


def read_in_sequence(  # noqa: PLR0917 - what to read, and how
    records: PartitionRecords[RawMessage],
    decoder: msgspec.json.Decoder[Record],
    key_of: Callable[[Record], Id],
    topic: str,
    total: int,
    result: AuditResult,
) -> Iterator[DecodedRecord[Record]]:
    """Yield the decoded records of a topic in sequence; records that break the sequence are left out.

    Parameters
    ----------
    records
        Records of the topic. Where retention has deleted the first, the sequence may begin anywhere.
    decoder
        Decoder of the records.
    key_of
        Returns the id of which a record's key is made.
    topic
        Name of the topic.
    total
        Number of records by the state record, numbered from 0. Later records are those of a worker that
        runs during the audit, if their offset is not below the stable offset.
    result
        Result to add differences to.

    Yields
    ------
    DecodedRecord
        Records with sequences below `total`.
    """
    expected = 0 if records.complete else None
    for source in records.items:
        record = _decoded(decoder, key_of, source, topic, result)
        if record is None:
            continue
        sequence = record.sequence
        if sequence >= total:
            if source.offset < records.stable_offset:
                result.add_difference(
                    topic, source.offset, f"none beyond sequence {total - 1}", f"sequence {sequence}"
                )
            continue
        if expected is not None and sequence != expected:
            result.add_difference(topic, source.offset, f"sequence {expected}", f"sequence {sequence}")
            if sequence < expected:
                continue
        expected = sequence + 1
        yield DecodedRecord(record, source)
    if expected is not None and expected < total:
        result.add_difference(topic, None, f"sequences {expected} to {total - 1}", "the end of the topic")


def _decoded(
    decoder: msgspec.json.Decoder[Record],
    key_of: Callable[[Record], Id],
    source: RawMessage,
    topic: str,
    result: AuditResult,
) -> Record | None:
    """Decode a record; None if no worker can have written it."""
    try:
        record = decoder.decode(source.value or b"")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        result.add_difference(
            topic, source.offset, "a record that a worker wrote", f"{source.value!r:.80}: {error}"
        )
        return None
    key = key_of(record)
    if source.key != str(key).encode():
        result.add_difference(topic, source.offset, f"key {key}", f"key {source.key!r}")
    return record
