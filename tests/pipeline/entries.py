"""Decoded messages beside what they were decoded from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.decoding import InputDecoder, Record, decode
from pipeline.inlet import Arrived
from pipeline.records import Source


class Entry(NamedTuple):
    """A message and what it was decoded to."""

    source: Source
    record: Record


def entries(sources: Sequence[Source], decoder: InputDecoder, latest: int) -> list[Entry]:
    """Messages of one input, in the order of their offsets, decoded."""
    keys, values = [source.key for source in sources], [source.value for source in sources]
    return list(map(Entry, sources, decode(keys, values, decoder, latest)))


def queued(decoded: Sequence[Entry]) -> Arrived:
    """Decoded messages as an inlet takes them."""
    sources = [entry.source for entry in decoded]
    return Arrived(
        [source.offset for source in sources],
        [source.size for source in sources],
        [entry.record for entry in decoded],
        sources,
    )
