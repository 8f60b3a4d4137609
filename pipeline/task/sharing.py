"""Shares: what partitions exchange about their outcomes, so that each learns from the users of all.

For every interval of outcomes, a partition publishes the counts of each video's labels, and some outcomes as
whole examples. Other partitions learn a share right before an outcome of their own, in whose record it is
kept. So their own log still determines their model, and shares may come late or be deleted without harm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from pipeline.features.target import TARGET
from pipeline.records.fields import Count, Id
from pipeline.records.outputs import Example, Share, VideoCounts

MAX_SHARES_BYTES = 250_000
"""Bytes from which on no further share goes into an outcome. With one share more, and itself, the outcome
 stays below a mebibyte: see `pipeline.config.tree.Sharing`."""
INBOX_BYTES = 4_000_000
"""Bytes of shares that a partition buffers until it has an outcome for them."""


class OutboxSettings(NamedTuple):
    """What an outbox depends on, beside its partition."""

    partitions: int
    """How many partitions there are, at least 2."""
    interval: int
    """Outcomes in a share."""


class Outbox:
    """Collects what a partition has not yet shared with the others.

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
        Sequence of the first outcome that is not yet shared.

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
        """Sequence of the first outcome that is in no share that was drained."""
        return self._shares[0].since if self._shares else self._since

    def add(self, example: Example | None) -> None:
        """Count the training example of the next outcome, if there is one."""
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
        """Return the shares that are ready to be published, each once."""
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
    """Buffers shares of other partitions until they are learned: each once, in order.

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
        self._buffer: deque[_BufferedShare] = deque()
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
            self._buffer.append(_BufferedShare(share, offset, size))
            self.bytes += size
            self._full = self.bytes >= INBOX_BYTES
            self._next[share.partition] = offset + 1

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
