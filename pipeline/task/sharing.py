"""Shares: what partitions publish about their outcomes, so that each learns from the events of all.

For every interval of outcomes, a partition publishes the counts of the labels of entities that may be in
several partitions, such as videos, and some outcomes as whole examples. Other partitions learn a share right
before an outcome of their own, in whose record it is kept. So their own log still determines their model, and
shares may come late or be deleted without harm.

With `sharing.align`, a share is also cut where stream time enters another window, a multiple of that time.
The last share of a window says up to which event time everything is shared, even if that is nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from operator import add
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np

from pipeline.config.feature_layout import FeatureLayout, Part
from pipeline.features.binary import TARGET
from pipeline.features.category_keys import category_keys
from pipeline.features.entities import Key
from pipeline.features.feature_set import KUAIREC_FEATURES, FeatureSet
from pipeline.features.target import Target
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.fields import Id
from pipeline.records.output_types import KUAIREC_TYPES, OutputTypes, counts_of
from pipeline.records.outputs import EffectSums, Example, Share

MIN_NOISE: Final = 1e-3
"""Least standard deviation of noise in what is shared: its six decimals may be zeros."""


class SharingSettings(NamedTuple):
    """What all partitions of a group have in common."""

    partitions: int
    """How many partitions there are, at least 2."""
    interval: int
    """Outcomes in a share."""
    features: FeatureSet = KUAIREC_FEATURES
    types: OutputTypes = KUAIREC_TYPES
    align: int | None = None
    """Milliseconds of event time in a window; None where shares are learned as they come."""
    target: Target = TARGET
    """The rules that make signals of watch ratios."""
    max_items: int = 1
    """Items of an interaction, at most."""


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
    >>> outbox = Outbox(0, SharingSettings(partitions=3, interval=2), since=120)
    >>> outbox.add(Example(7, "a", 5, [0.5] * 10, label=True, watch_ratio=1.25))
    >>> outbox.add(None)
    >>> outbox.since, outbox.next
    (120, 122)
    >>> outbox.drain()[0].videos
    [EntityCounts(entity='a', events=1, labels=1, values=1.25)]
    >>> outbox.since
    122
    """

    def __init__(
        self, partition: int, settings: SharingSettings, since: int, stream_time: int = NO_TIMESTAMP
    ) -> None:
        self._partition = partition
        self._others = settings.partitions - 1
        self._interval = settings.interval
        self._types, self._layout = settings.types, settings.features.layout
        self._effect_columns = settings.features.effect_columns
        self._align = settings.align
        self._target = settings.target
        self._stream_time = stream_time
        self._moves: deque[tuple[int, int]] = deque()
        """Stream times that are the first of their window, after how many outcomes each came."""
        self._shares: list[Share] = []
        self.next = since
        self._begin()

    @property
    def example_type(self) -> type[Example]:
        """The type of the examples that it collects."""
        return self._types.example

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
        counts: list[list[Any]] = []
        for number, of_table in zip(self._layout.shared, self._counts, strict=True):
            make_counts: Any = counts_of(self._layout.tables[number])
            counts.append([make_counts(key, *sums) for key, sums in of_table.items()])
        sums = None
        if self._layout.shared_effects is not None:
            sums = [EffectSums(*map(_rounded, each)) for each in self._sums.values()]
        window_end = None if self._align is None else (self._stream_time // self._align + 1) * self._align
        make: Any = self._types.share
        self._shares.append(
            make(
                self._partition,
                self._since,
                self.next,
                *counts,
                self._examples,
                sums,
                window_end,
                closed_until,
            )
        )
        self._begin()

    def _begin(self) -> None:
        self._since = self.next
        self._counts: list[dict[Key, tuple[int, int, float]]] = [{} for _ in self._layout.shared]
        self._sums: dict[Key, Sums] = {}
        self._examples: list[Example] = []

    def _count(self, example: Example) -> None:
        value, ids = self._target.summand(example.watch_ratio), example.ids
        positive = self._target.is_positive(example.watch_ratio)
        for number, counts in zip(self._layout.shared, self._counts, strict=True):
            key = _key(self._layout.tables[number].parts, ids, example, self._layout)
            events, labels, values = counts.get(key, (0, 0, 0.0))
            counts[key] = events + 1, labels + positive, values + value
            if number == self._layout.shared_effects:
                sums = self._sums.get(key, (0.0, 0.0, 0.0, 0.0))
                said = _effect_sums(example, self._target, self._effect_columns)
                self._sums[key] = cast(Sums, tuple(map(add, sums, said)))


def _key(parts: Sequence[Part], ids: Sequence[Id], example: Example, layout: FeatureLayout) -> Key:
    """Return the key of an example in a table."""
    running = len(layout.running_names)
    key = [
        ids[part.place]
        if part.entity
        else category_keys(part, np.array([example.features[running + part.place]]))[0]
        for part in parts
    ]
    return key[0] if len(key) == 1 else (key[0], key[1])


Sums: TypeAlias = tuple[float, float, float, float]


def _effect_sums(example: Example, target: Target, columns: Sequence[int]) -> Sums:
    """Return what a label says of its item's effect, given what was known when it was predicted."""
    signal = target.signal(example.watch_ratio)
    effect, noise_root, item_effect = (example.features[columns[number]] for number in range(3))
    root = max(noise_root, MIN_NOISE)
    noise = root * root
    residual = signal - effect
    rest = residual - item_effect
    return residual / noise, 1.0 / noise, signal, rest * rest


def _rounded(value: float) -> float:
    """Return a sum with six decimals: more of them do not make predictions better."""
    return round(value, 6)
