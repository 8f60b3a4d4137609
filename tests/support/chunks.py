"""The checkpoints topic of one partition, as far as it holds the chunks of snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

from pipeline.errors import StateError
from pipeline.records.names import snapshot_key


class FakeLog:
    """A log that holds whole snapshots at some offsets, each in the next slot.

    Parameters
    ----------
    snapshots
        Their bytes by offset.
    partition
        The partition's number.
    """

    def __init__(self, snapshots: Mapping[int, bytes], partition: int = 0) -> None:
        self._snapshots = snapshots
        self._partition = partition

    def at(self, topic: str, partition: int, offset: int) -> SimpleNamespace:
        """Return the message at an offset."""
        if offset not in self._snapshots:
            raise StateError(f"{topic} has no record at offset {offset} of partition {partition}")
        key = snapshot_key(self._partition, [*self._snapshots].index(offset) % 2, 0).encode()
        return SimpleNamespace(
            value=lambda: self._snapshots[offset],
            key=lambda: key,
            offset=lambda: offset,
            timestamp=lambda: (1, 0),
        )
