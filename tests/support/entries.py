"""Decoded messages beside what they were decoded from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from confluent_kafka import Message

from pipeline.records.column_decoder import ColumnDecoder
from pipeline.records.decoding import Decoded, InputDecoder, Record, decode
from pipeline.records.inputs import RawMessage

_to_columns = cache(ColumnDecoder)


class Entry(NamedTuple):
    """A message and what it was decoded to."""

    source: RawMessage
    record: Record
    decoder: InputDecoder[Any]
    latest: int
    """The largest timestamp that was accepted, in milliseconds."""


def entries(sources: Sequence[RawMessage], decoder: InputDecoder[Any], latest: int) -> list[Entry]:
    """Messages of one input, in the order of their offsets, decoded."""
    keys, values = [source.key for source in sources], [source.value for source in sources]
    records = decode(keys, values, decoder, latest)
    return [Entry(source, record, decoder, latest) for source, record in zip(sources, records, strict=True)]


def queued(decoded: Sequence[Entry]) -> Decoded:
    """Return decoded messages as a record queue is fed: in columns, if their decoder has such."""
    if not decoded:
        nothing = np.empty(0, dtype=np.int64)
        return Decoded([], nothing, nothing, [])
    messages = [delivered(entry.source) for entry in decoded]
    return _to_columns(decoded[0].decoder, 1).decode(messages, decoded[0].latest)


def delivered(source: RawMessage) -> Message:
    """Return the message as a client delivers it."""
    return Message(**source._asdict() | {"headers": source.headers or None})
