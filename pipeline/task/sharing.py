"""Shares: what partitions publish about their outcomes, so that each learns from the users of all.

For every interval of outcomes, a partition publishes the counts of each video's labels, and some outcomes as
whole examples. Other partitions learn a share right before an outcome of their own, in whose record it is
kept. So their own log still determines their model, and shares may come late or be deleted without harm.

With `sharing.align`, a share is also cut where stream time enters another window, a multiple of that time.
The last share of a window says up to which event time everything is shared, even if that is nothing.
"""

from __future__ import annotations

from collections import deque
from operator import add
from typing import Final, NamedTuple, TypeAlias, cast

from pipeline.config.tree import FeatureKind
from pipeline.features.statistics import EFFECTS
from pipeline.features.target import TARGET, Target
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.fields import Id
from pipeline.records.outputs import EffectSums, Example, Share, VideoCounts

MIN_NOISE: Final = 1e-3
"""Least standard deviation of a user's noise in what is shared: its six decimals may be zeros."""
_USER_EFFECT, _USER_NOISE, _VIDEO_EFFECT = map(EFFECTS.index, ("user_effect", "user_noise", "video_effect"))


class SharingSettings(NamedTuple):
    """What all partitions of a group have in common."""

    partitions: int
    """How many partitions there are, at least 2."""
    interval: int
    """Outcomes in a share."""
    kind: FeatureKind = "effects"
    """Of the running features."""
    align: int | None = None
    """Milliseconds of event time in a window; None where shares are learned as they come."""
    target: Target = TARGET
    """The rules that make signals of watch ratios."""


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
    stream_time
        The partition's stream time, in milliseconds.

    Attributes
    ----------
    next
        The outcome to be counted next.

    Examples
    --------
    >>> outbox = Outbox(0, SharingSettings(partitions=3, interval=2, kind="running"), since=120)
    >>> outbox.add(Example(7, "a", 5, [0.5] * 10, label=True, watch_ratio=1.25))
    >>> outbox.add(None)
    >>> outbox.since, outbox.next
    (120, 122)
    >>> outbox.drain()[0].videos
    [VideoCounts(video_id='a', events=1, labels=1, ratios=1.25)]
    >>> outbox.since
    122
    """

    def __init__(
        self, partition: int, settings: SharingSettings, since: int, stream_time: int = NO_TIMESTAMP
    ) -> None:
        self._partition = partition
        self._others = settings.partitions - 1
        self._interval = settings.interval
        self._effects = settings.kind == "effects"
        self._align = settings.align
        self._target = settings.target
        self._stream_time = stream_time
        self._moves: deque[tuple[int, int]] = deque()
        """Stream times that are the first of their window, after how many outcomes each came."""
        self._shares: list[Share] = []
        self.next = since
        self._begin()

    @property
    def since(self) -> int:
        """Sequence of the first outcome that is in no share that was drained."""
        return self._shares[0].since if self._shares else self._since

    def add(self, example: Example | None) -> None:
        """Count the training example of the next outcome, if there is one."""
        self._close_windows()
        if example is not None:
            self._count(example)
            if self.next % self._others == 0:
                self._examples.append(example)
        self.next += 1
        if self.next - self._since == self._interval:
            self._cut()

    def move(self, stream_time: int, outcomes: int) -> None:
        """Note that stream time moves, after so many outcomes of the partition in all."""
        if self._align is not None:
            last = self._moves[-1][1] if self._moves else self._stream_time
            if stream_time // self._align > last // self._align:
                self._moves.append((outcomes, stream_time))

    def drain(self) -> list[Share]:
        """Return the shares that are ready to be published, each once."""
        self._close_windows()
        shares, self._shares = self._shares, []
        return shares

    def _close_windows(self) -> None:
        """Cut the last share of each window that ends before the next outcome."""
        while self._moves and self._moves[0][0] <= self.next:
            _, later = self._moves.popleft()
            assert self._align is not None
            self._cut(closed_until=later // self._align * self._align)
            self._stream_time = later

    def _cut(self, closed_until: int | None = None) -> None:
        """Append a share of the outcomes since the last one, the last of its window if that is closed."""
        videos = [VideoCounts(video, *counts) for video, counts in self._videos.items()]
        sums = [EffectSums(*map(_rounded, each)) for each in self._sums.values()] if self._effects else None
        window_end = None if self._align is None else (self._stream_time // self._align + 1) * self._align
        self._shares.append(
            Share(
                self._partition,
                self._since,
                self.next,
                videos,
                self._examples,
                sums,
                window_end,
                closed_until,
            )
        )
        self._begin()

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
            ratios + self._target.cap(example.watch_ratio),
        )
        if self._effects:
            sums = self._sums.get(example.video_id, (0.0, 0.0, 0.0, 0.0))
            self._sums[example.video_id] = cast(
                Sums, tuple(map(add, sums, _effect_sums(example, self._target)))
            )


Sums: TypeAlias = tuple[float, float, float, float]


def _effect_sums(example: Example, target: Target) -> Sums:
    """Return what a label says of its video's effect, given what was known when it was predicted."""
    signal = target.signal(example.watch_ratio)
    effect, noise = example.features[_USER_EFFECT], max(example.features[_USER_NOISE], MIN_NOISE) ** 2
    residual = signal - effect
    rest = residual - example.features[_VIDEO_EFFECT]
    return residual / noise, 1.0 / noise, signal, rest * rest


def _rounded(value: float) -> float:
    """Return a sum with six decimals: more of them do not make predictions better."""
    return round(value, 6)
