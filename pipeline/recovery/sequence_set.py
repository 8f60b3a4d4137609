"""A set of sequences, in bits: those of tens of millions of closed predictions are a few megabytes."""

from __future__ import annotations

from typing import Final

CHUNK: Final = 2**16
"""Sequences whose bits stand together."""


class SequenceSet:
    """A set of sequences, of which most lie close to one another.

    Examples
    --------
    >>> closed = SequenceSet()
    >>> closed.add(70_000)
    >>> 70_000 in closed, 70_001 in closed, 0 in closed
    (True, False, False)
    """

    def __init__(self) -> None:
        self._chunks: dict[int, bytearray] = {}

    def add(self, sequence: int) -> None:
        """Add a sequence."""
        number, bit = divmod(sequence, CHUNK)
        chunk = self._chunks.get(number)
        if chunk is None:
            chunk = self._chunks[number] = bytearray(CHUNK // 8)
        chunk[bit >> 3] |= 1 << (bit & 7)

    def __contains__(self, sequence: int) -> bool:
        number, bit = divmod(sequence, CHUNK)
        chunk = self._chunks.get(number)
        return chunk is not None and chunk[bit >> 3] >> (bit & 7) & 1 == 1
