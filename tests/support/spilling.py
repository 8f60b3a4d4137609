"""Spilled predictions in memory, in blocks so small that they fill and empty all the time."""

from __future__ import annotations

from pipeline.join.spill import SpilledPredictions
from pipeline.records.output_types import KUAIREC_TYPES, OutputTypes


class MemoryStore:
    """A `pipeline.join.spill.RecordStore` in memory."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.largest = 0
        """The most bytes that it ever had."""

    def write(self, at: int, data: bytes) -> None:
        """Write bytes at a place."""
        self.data.extend(bytes(max(0, at + len(data) - len(self.data))))
        self.data[at : at + len(data)] = data
        self.largest = max(self.largest, len(self.data))

    def read(self, at: int, size: int) -> bytes:
        """Return bytes that were written."""
        return bytes(self.data[at : at + size])

    def truncate(self, size: int) -> None:
        """Forget what stands from a place on."""
        del self.data[size:]


def small_blocks(rows: int = 3, size: int = 1_500, types: OutputTypes = KUAIREC_TYPES) -> SpilledPredictions:
    """Return a place for spilled predictions, in blocks of a few."""
    return SpilledPredictions(MemoryStore(), types.predictions, bytes(16), rows=rows, size=size)
