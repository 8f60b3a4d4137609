"""Records that carry sequence numbers: each number once, in order, none missing, none too many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec

from pipeline.audit.evidence import Stretch
from pipeline.audit.ledger import Ledger
from pipeline.records import LabelRequest, Outcome, Prediction, Source

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
