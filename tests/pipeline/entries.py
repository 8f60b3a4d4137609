"""Decoded messages beside what they were decoded from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.inlet import Queued
from pipeline.records import InputDecoder, Record, Source, decode


class Entry(NamedTuple):
    """A message and what it was decoded to."""

    source: Source
    record: Record


def entries(sources: Sequence[Source], decoder: InputDecoder, latest: int) -> list[Entry]:
    """Messages of one input, in the order of their offsets, decoded."""
    keys, values = [source.key for source in sources], [source.value for source in sources]
    return list(map(Entry, sources, decode(keys, values, decoder, latest)))


def queued(decoded: Sequence[Entry]) -> list[Queued]:
    """Decoded messages as an inlet takes them."""
    return [(source.offset, source.size, record, source) for source, record in decoded]
