"""Decoded messages beside what they were decoded from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from confluent_kafka import Message

from pipeline.records.decoding import Decoded, InputDecoder, Record, decode, times_of
from pipeline.records.inputs import RawMessage
from pipeline.task.record_queue import PolledMessages


class Entry(NamedTuple):
    """A message and what it was decoded to."""

    source: RawMessage
    record: Record


def entries(sources: Sequence[RawMessage], decoder: InputDecoder[Any], latest: int) -> list[Entry]:
    """Messages of one input, in the order of their offsets, decoded."""
    keys, values = [source.key for source in sources], [source.value for source in sources]
    return list(map(Entry, sources, decode(keys, values, decoder, latest).records))


def queued(decoded: Sequence[Entry]) -> PolledMessages:
    """Return decoded messages as a record queue is fed."""
    records = [entry.record for entry in decoded]
    return PolledMessages(
        [delivered(entry.source) for entry in decoded],
        Decoded(records, times_of(records)),
        [entry.source.size for entry in decoded],
    )


def delivered(source: RawMessage) -> Message:
    """Return the message as a client delivers it."""
    return Message(**source._asdict() | {"headers": source.headers or None})
