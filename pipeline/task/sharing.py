"""Shares: what partitions exchange about their outcomes, so that each learns from the users of all.

For every interval of outcomes, a partition publishes the counts of each video's labels, and some outcomes as
whole examples. Other partitions learn a share right before an outcome of their own, in whose record it is
kept. So their own log still determines their model, and shares may come late or be deleted without harm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from operator import add
from typing import Final, NamedTuple, TypeAlias, cast

from pipeline.config.tree import FeatureKind
from pipeline.features.effects import signal_of
from pipeline.features.statistics import EFFECTS
from pipeline.features.target import TARGET
from pipeline.records.fields import Count, Id
from pipeline.records.outputs import EffectSums, Example, Share, VideoCounts

MAX_SHARES_BYTES = 250_000
"""Bytes from which on no further share goes into an outcome. With one share more, and itself, the outcome
 stays below a mebibyte: see `pipeline.config.tree.Sharing`."""
MIN_NOISE: Final = 1e-3
"""Least standard deviation of a user's noise in what is shared: its six decimals may be zeros."""
_USER_EFFECT, _USER_NOISE, _VIDEO_EFFECT = map(EFFECTS.index, ("user_effect", "user_noise", "video_effect"))

INBOX_BYTES = 4_000_000
"""Bytes of shares that a partition buffers until it has an outcome for them."""


class OutboxSettings(NamedTuple):
    """What an outbox depends on, beside its partition."""

    partitions: int
    """How many partitions there are, at least 2."""
    interval: int
    """Outcomes in a share."""
    kind: FeatureKind = "effects"
    """Of the running features."""


class Outbox:
    """Collects what a partition has not yet shared with the others.

    Examples are so many that a partition learns from as many of the others' together as of its own.

    Parameters
    ----------
    partition
        Its number.
    settings
        What all outboxes have in common.
    since
        Sequence of the first outcome that is not yet shared.

    Attributes
    ----------
    next
        The outcome to be counted next.

    Examples
    --------
    >>> outbox = Outbox(0, OutboxSettings(partitions=3, interval=2, kind="running"), since=120)
    >>> outbox.add(Example(7, "a", 5, [0.5] * 10, label=True, watch_ratio=1.25))
    >>> outbox.add(None)
    >>> outbox.since, outbox.next
    (120, 122)
    >>> outbox.drain()[0].videos
    [VideoCounts(video_id='a', events=1, labels=1, ratios=1.25)]
    >>> outbox.since
    122
    """

    def __init__(self, partition: int, settings: OutboxSettings, since: int) -> None:
        self._partition = partition
        self._others = settings.partitions - 1
        self._interval = settings.interval
        self._effects = settings.kind == "effects"
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
            sums = (
                [EffectSums(*map(_rounded, each)) for each in self._sums.values()] if self._effects else None
            )
            self._shares.append(Share(self._partition, self._since, self.next, videos, self._examples, sums))
            self._begin()

    def drain(self) -> list[Share]:
        """Return the shares that are ready to be published, each once."""
        shares, self._shares = self._shares, []
        return shares

    def _begin(self) -> None:
        self._since = self.next
        self._videos: dict[Id, tuple[int, int, float]] = {}
        self._sums: dict[Id, tuple[float, float, float, float]] = {}
        self._examples: list[Example] = []

    def _count(self, example: Example) -> None:
        events, labels, ratios = self._videos.get(example.video_id, (0, 0, 0.0))
        self._videos[example.video_id] = (
            events + 1,
            labels + example.label,
            ratios + TARGET.cap(example.watch_ratio),
        )
        if self._effects:
            sums = self._sums.get(example.video_id, (0.0, 0.0, 0.0, 0.0))
            self._sums[example.video_id] = cast(Sums, tuple(map(add, sums, _effect_sums(example))))


Sums: TypeAlias = tuple[float, float, float, float]


def _effect_sums(example: Example) -> Sums:
    """Return what a label says of its video's effect, given what was known when it was predicted."""
    signal = signal_of(example.watch_ratio, TARGET.threshold)
    effect, noise = example.features[_USER_EFFECT], max(example.features[_USER_NOISE], MIN_NOISE) ** 2
    residual = signal - effect
    rest = residual - example.features[_VIDEO_EFFECT]
    return residual / noise, 1.0 / noise, signal, rest * rest


def _rounded(value: float) -> float:
    """Return a sum with six decimals: more of them do not make predictions better."""
    return round(value, 6)


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
