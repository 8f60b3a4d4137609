"""What an audit reads of a partition's topics, in the order of sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec

from pipeline.kafka.topics import Topics
from pipeline.records.dead_letter import Letter
from pipeline.records.inputs import Source
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from pipeline.task.state import State
from pipeline.tools.audit.differences import Ledger

Item = TypeVar("Item")


class Buried(NamedTuple):
    """A dead letter, and what its headers say."""

    source: Source
    letter: Letter


class Stretch(NamedTuple, Generic[Item]):
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
    begin: int
    covered: int

    @property
    def whole(self) -> bool:
        """Whether nothing was deleted at the beginning."""
        return self.begin == 0


class Evidence(NamedTuple):
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
    interactions: Stretch[Source]
    labels: Stretch[Source]
    predictions: Stretch[Source]
    outcomes: Stretch[Source]
    dead_letters: Stretch[Buried]
    requests: Stretch[Source] = Stretch((), 0, 0)
    """None where no labels are asked for."""


Record = TypeVar("Record", Prediction, Outcome, LabelRequest)


class Line(NamedTuple, Generic[Record]):
    """A record of a log, and the message that it was decoded from."""

    record: Record
    source: Source


def numbered(
    stretch: Stretch[Source], decoder: msgspec.json.Decoder[Record], topic: str, total: int, ledger: Ledger
) -> Iterator[Line[Record]]:
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
    expected = 0 if stretch.whole else None
    for source in stretch.items:
        record = _decoded(decoder, source, topic, ledger)
        if record is None:
            continue
        sequence = record.sequence
        if sequence >= total:
            if source.offset < stretch.covered:
                ledger.differs(
                    topic, source.offset, f"none beyond sequence {total - 1}", f"sequence {sequence}"
                )
            continue
        if expected is not None and sequence != expected:
            ledger.differs(topic, source.offset, f"sequence {expected}", f"sequence {sequence}")
            if sequence < expected:
                continue
        expected = sequence + 1
        yield Line(record, source)
    if expected is not None and expected < total:
        ledger.differs(topic, None, f"sequences {expected} to {total - 1}", "the end of the topic")


def _decoded(
    decoder: msgspec.json.Decoder[Record], source: Source, topic: str, ledger: Ledger
) -> Record | None:
    """The record, if a worker can have written it."""
    try:
        record = decoder.decode(source.value or b"")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        ledger.differs(topic, source.offset, "a record that a worker wrote", f"{source.value!r:.80}: {error}")
        return None
    if source.key != str(record.user_id).encode():
        ledger.differs(topic, source.offset, f"key {record.user_id}", f"key {source.key!r}")
    return record
