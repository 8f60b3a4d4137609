"""What partitions tell one another of their outcomes, so that each learns from the users of all.

Of every so many outcomes, a partition publishes what their labels come to for each video, and some of them
whole. Others take that over when they fold an outcome of their own, in whose record it is kept: their log
alone still determines their model, and what was published may come late, or be deleted, without harm to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from pipeline.features.target import TARGET
from pipeline.records.fields import Count, Id
from pipeline.records.outputs import Example, Share, VideoCounts

MAX_SHARES_BYTES = 250_000
"""Bytes from which on no further share is taken over with an outcome. With one share more, and itself, the
outcome stays below a mebibyte: see `pipeline.config.tree.Sharing`."""
INBOX_BYTES = 4_000_000
"""Bytes of shares that a partition holds until it has an outcome to take them over with."""


class OutboxSettings(NamedTuple):
    """What an outbox depends on, beside its partition."""

    partitions: int
    """How many partitions there are, at least 2."""
    interval: int
    """Outcomes in a share."""


class Outbox:
    """What a partition has not yet told the others.

    Examples are so many that a partition learns from as many of the others' together as of its own.

    Parameters
    ----------
    partition
        Its number.
    partitions
        How many there are, at least 2.
    interval
        Outcomes in a share.
    since
        The first outcome that the others have not been told of, by its sequence.

    Attributes
    ----------
    next
        The outcome to be counted next.

    Examples
    --------
    >>> outbox = Outbox(partition=0, partitions=3, interval=2, since=120)
    >>> outbox.add(Example(7, "a", 5, [0.5], label=True, watch_ratio=1.25))
    >>> outbox.add(None)
    >>> outbox.since, outbox.next
    (120, 122)
    >>> outbox.drain()[0].videos
    [VideoCounts(video_id='a', events=1, labels=1, ratios=1.25)]
    >>> outbox.since
    122
    """

    def __init__(self, partition: int, partitions: int, interval: int, since: int) -> None:
        self._partition = partition
        self._others = partitions - 1
        self._interval = interval
        self._shares: list[Share] = []
        self.next = since
        self._begin()

    @property
    def since(self) -> int:
        """The first outcome that was not in what was taken."""
        return self._shares[0].since if self._shares else self._since

    def add(self, example: Example | None) -> None:
        """Count what the next outcome teaches, if anything."""
        if example is not None:
            self._count(example)
            if self.next % self._others == 0:
                self._examples.append(example)
        self.next += 1
        if self.next - self._since == self._interval:
            videos = [VideoCounts(video, *counts) for video, counts in self._videos.items()]
            self._shares.append(Share(self._partition, self._since, self.next, videos, self._examples))
            self._begin()

    def drain(self) -> list[Share]:
        """What is ready to be published, once."""
        shares, self._shares = self._shares, []
        return shares

    def _begin(self) -> None:
        self._since = self.next
        self._videos: dict[Id, tuple[int, int, float]] = {}
        self._examples: list[Example] = []

    def _count(self, example: Example) -> None:
        events, labels, ratios = self._videos.get(example.video_id, (0, 0, 0.0))
        self._videos[example.video_id] = (
            events + 1,
            labels + example.label,
            ratios + TARGET.cap(example.watch_ratio),
        )


class _BufferedShare(NamedTuple):
    share: Share
    offset: int
    size: int


class Inbox:
    """What others have told a partition, until it takes that over: each share once, in order.

    Parameters
    ----------
    partition
        Its number.
    taken
        By other partition, the offset after the last share that was taken over.

    Attributes
    ----------
    taken
        The same, now.
    """

    def __init__(self, partition: int, taken: Mapping[int, Count]) -> None:
        self.partition = partition
        self.taken = dict(taken)
        self._buffer: deque[_BufferedShare] = deque()
        self.bytes = 0
        """Size of what is held."""
        self.outcomes = 0
        """Outcomes of others that what was taken here tells of."""
        self._full = False
        self._next = dict(taken)

    def next_offset(self, partition: int) -> int | None:
        """The offset to go on from in what a partition publishes; None while nothing is wanted of it."""
        if partition == self.partition or self._full:
            return None
        return self._next.get(partition, 0)

    def offer(self, share: Share, offset: int, size: int) -> None:
        """Hold a share, of so many bytes, published at an offset, if it is wanted."""
        wanted = self.next_offset(share.partition)
        if wanted is not None and offset >= wanted:
            self._buffer.append(_BufferedShare(share, offset, size))
            self.bytes += size
            self._full = self.bytes >= INBOX_BYTES
            self._next[share.partition] = offset + 1

    def drain(self) -> list[Share]:
        """What is to be folded with the next outcome; for the one after stays what there is no room for."""
        taken, size = [], 0
        while self._buffer and size < MAX_SHARES_BYTES:
            buffered = self._buffer.popleft()
            size += buffered.size
            self.taken[buffered.share.partition] = buffered.offset + 1
            self.outcomes += buffered.share.until - buffered.share.since
            taken.append(buffered.share)
        self.bytes -= size
        self._full = self._full and self.bytes > INBOX_BYTES // 2
        return taken
