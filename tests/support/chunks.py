"""The checkpoints topic of one partition, as far as it holds the chunks of snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

from pipeline.errors import StateError


class FakeLog:
    """A log that holds the chunks of snapshots at some offsets."""

    def __init__(self, chunks: Mapping[int, bytes]) -> None:
        self._chunks = chunks

    def at(self, topic: str, partition: int, offset: int) -> SimpleNamespace:
        """Return the message at an offset."""
        if offset not in self._chunks:
            raise StateError(f"{topic} has no record at offset {offset} of partition {partition}")
        return SimpleNamespace(value=lambda: self._chunks[offset], timestamp=lambda: (1, 0))
