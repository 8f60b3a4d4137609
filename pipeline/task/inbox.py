"""The inbox of a partition: shares of the other partitions until they are learned."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from pipeline.records.fields import Count, Timestamp
from pipeline.records.largest import MAX_SHARES_BYTES
from pipeline.records.outputs import Share

ALL_OUTCOMES: Final = 2**62
"""More than there are ever."""
INBOX_BYTES: Final = 4_000_000
"""Bytes of shares that a partition buffers until it has an outcome for them."""


class BufferedShare(NamedTuple):
    """A share with its offset and its size in bytes."""

    share: Share
    offset: int
    size: int


class Inbox:
    """Buffers shares of other partitions until they are learned: each once, as they come.

    Parameters
    ----------
    partition
        Its number.
    taken
        By other partition, the offset after the last share that was learned.

    Attributes
    ----------
    taken
        The same, now.
    """

    def __init__(self, partition: int, taken: Mapping[int, Count]) -> None:
        self.partition = partition
        self.taken = dict(taken)
        self._buffer: deque[BufferedShare] = deque()
        self.bytes = 0
        """Size of what is held."""
        self.outcomes = 0
        """Outcomes of other partitions in the shares that were drained here."""
        self._full = False
        self._next = dict(taken)

    def next_offset(self, partition: int) -> int | None:
        """Return the offset from which to read a partition's shares; None while nothing is wanted of it."""
        if partition == self.partition or self._full:
            return None
        return self._next.get(partition, 0)

    def offer(self, share: Share, offset: int, size: int) -> None:
        """Buffer a share of `size` bytes, published at an offset, if it is wanted."""
        wanted = self.next_offset(share.partition)
        if wanted is not None and offset >= wanted:
            self._buffer.append(BufferedShare(share, offset, size))
            self.bytes += size
            self._full = self.bytes >= INBOX_BYTES
            self._next[share.partition] = offset + 1

    @property
    def windows(self) -> dict[int, Timestamp]:
        """What a restart has to know of windows: nothing, where shares are learned as they come."""
        return {}

    @property
    def ready(self) -> bool:
        """Whether it is known what the outcomes of the next message learn. Nothing is waited for here."""
        return True

    @property
    def max_outcomes(self) -> int:
        """The number of outcomes until the next window of which it is known what they learn."""
        return ALL_OUTCOMES

    @property
    def next_window(self) -> Timestamp | None:
        """The first time of the next window; None without windows."""
        return None

    @property
    def missing(self) -> list[int]:
        """The partitions that are waited for."""
        return []

    def move(self, stream_time: int) -> None:
        """Note that stream time moves."""

    def time_out(self, partitions: Collection[int]) -> None:
        """Wait no longer for partitions, until they have caught up."""

    def drain(self) -> list[Share]:
        """Return the shares to learn with the next outcome; those without room stay for the one after."""
        drained, size = [], 0
        while self._buffer and size < MAX_SHARES_BYTES:
            buffered = self._buffer.popleft()
            size += buffered.size
            self.taken[buffered.share.partition] = buffered.offset + 1
            self.outcomes += buffered.share.until - buffered.share.since
            drained.append(buffered.share)
        self.bytes -= size
        self._full = self._full and self.bytes > INBOX_BYTES // 2
        return drained
