"""What an audit reads of a partition's topics, in the order of sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec

from pipeline.kafka.topics import Topics
from pipeline.records.dead_letter import DeadLetterHeaders
from pipeline.records.inputs import RawMessage
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from pipeline.task.state import State
from pipeline.tools.audit.differences import AuditResult

Item = TypeVar("Item")


class DeadLetterMessage(NamedTuple):
    """A dead letter, and what its headers say."""

    source: RawMessage
    dead_letter: DeadLetterHeaders


class PartitionRecords(NamedTuple, Generic[Item]):
    """The committed records of one topic's partition.

    Attributes
    ----------
    items
        The records in the order of their offsets.
    begin
        The first offset that retention has left.
    covered
        No record below this offset was written after the state record.
    """

    items: Iterable[Item]
    log_start_offset: int
    stable_offset: int

    @property
    def complete(self) -> bool:
        """Whether nothing was deleted at the beginning."""
        return self.log_start_offset == 0


class AuditInput(NamedTuple):
    """All of one partition.

    Attributes
    ----------
    topics
        Their names.
    state
        The state record that was committed when the audit began.
    state_offset
        Where it is.
    snapshot
        The bytes of the snapshot that it names; None if it names none.
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
    """None where no labels are asked for."""


Record = TypeVar("Record", Prediction, Outcome, LabelRequest)


class DecodedRecord(NamedTuple, Generic[Record]):
    """A record of a log, and the message that it was decoded from."""

    record: Record
    source: RawMessage


def read_in_sequence(
    records: PartitionRecords[RawMessage],
    decoder: msgspec.json.Decoder[Record],
    topic: str,
    total: int,
    result: AuditResult,
) -> Iterator[DecodedRecord[Record]]:
    """The records of which the state record says that there are `total`; what does not belong is passed over.

    Parameters
    ----------
    stretch
        The topic's records. Where retention has taken the first, numbers may begin anywhere.
    decoder
        Of its records.
    topic
        Its name.
    total
        Records numbered from 0 that there have to be. Later ones are of a worker that goes on, if they
        lie behind what the state record covers.
    ledger
        Where to note what differs.
    """
    expected = 0 if records.complete else None
    for source in records.items:
        record = _decoded(decoder, source, topic, result)
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
    decoder: msgspec.json.Decoder[Record], source: RawMessage, topic: str, result: AuditResult
) -> Record | None:
    """The record, if a worker can have written it."""
    try:
        record = decoder.decode(source.value or b"")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        result.add_difference(
            topic, source.offset, "a record that a worker wrote", f"{source.value!r:.80}: {error}"
        )
        return None
    if source.key != str(record.user_id).encode():
        result.add_difference(topic, source.offset, f"key {record.user_id}", f"key {source.key!r}")
    return record
