"""The sparse part as plainly as it can be: dictionaries instead of a table, one variant after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from forks.losses import probability
from forks.sparse.hashing import key_of, pair_of
from forks.sparse.plan import Variant, variants_of
from forks.sparse.scores import BIN, BINNED_AFTER, BINNED_PAIR, BINS, FIELD, PAIR, WORD
from forks.sparse.settings import (
    BIAS_VARIANCE,
    FADING,
    FIELD_VARIANCE,
    PAIR_VARIANCE,
    WORD_VARIANCE,
    SparseSettings,
)

Event = tuple[list[float], list[float], list[float]]
"""Hashes of categories, those of words, and numbers."""


@dataclass
class SlowVariant:
    """One variant: weights and variances by key, which are never forgotten."""

    settings: SparseSettings
    variant: Variant
    bias: float = 0.0
    bias_variance: float = BIAS_VARIANCE
    squared_errors: float = 0.0
    weights: dict[int, float] = field(default_factory=dict)
    variances: dict[int, float] = field(default_factory=dict)

    def prior(self, kind: int) -> float:
        bins = self.variant.bins
        members = self.settings.fields + (self.settings.numbers if bins else 0)
        if kind == WORD:
            return float(np.float32(WORD_VARIANCE))
        if kind in {FIELD, BIN}:
            return float(np.float32(FIELD_VARIANCE / members))
        crosses = [each for each in self.settings.crossed if bins or each[-1] < self.settings.fields]
        return float(np.float32(PAIR_VARIANCE / len(crosses)))

    def variance(self, key: int, kind: int) -> float:
        known = self.variances.get(key, self.prior(kind))
        return min(self.prior(kind), known * (1 + FADING)) if self.variant.fading else known

    def active(self, keys: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [
            (key, kind)
            for key, kind in keys
            if (self.variant.pairs or kind not in {PAIR, BINNED_PAIR})
            and (self.variant.bins or kind not in {BIN, BINNED_PAIR})
        ]

    def score(self, keys: list[tuple[int, int]], base: float) -> float:
        total = base + self.bias
        for key, _ in self.active(keys):
            total += self.weights.get(key, 0.0)
        return total

    def learn(
        self, keys: list[tuple[int, int]], base: float, label: float, importance: float, part: SlowPart
    ) -> None:
        active, score = self.active(keys), self.score(keys, base)
        variance = self.bias_variance
        for key, kind in active:
            variance += self.variance(key, kind)
        unit = part.unit()
        variance *= unit
        if self.settings.loss == "logistic":
            p = probability(score)
            curvature = importance * max(p * (1 - p), 1e-4)
            slope = importance * label * probability(-label * score)
        else:
            noise = (self.squared_errors + 10 * unit) / (part.labels + 10)
            curvature = importance / (noise or 1.0)
            slope = (label - score) * curvature
            self.squared_errors += importance * (label - score) ** 2
        d = 1 + curvature * variance
        step, shrink = unit * slope / d, unit * curvature / d
        self.bias += self.bias_variance * step
        self.bias_variance -= shrink * self.bias_variance**2
        for key, kind in active:
            v = self.variance(key, kind)
            self.weights[key] = float(np.float32(self.weights.get(key, 0.0) + v * step))
            self.variances[key] = float(np.float32(v - shrink * v * v))


@dataclass
class SlowPart:
    """All variants and their mixture."""

    settings: SparseSettings
    labels: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    learned: int = 0
    errors: float = 0.0
    error_count: float = 0.0
    first: list[list[float]] = field(default_factory=list)
    edges: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.variants = [SlowVariant(self.settings, each) for each in variants_of(self.settings)]
        self.shares = [1 / (len(self.variants) + 1)] * (len(self.variants) + 1)

    def unit(self) -> float:
        if self.settings.loss == "logistic":
            return 1.0
        mean = self.total / (self.labels + 1)
        return max(self.squares / (self.labels + 1) - mean * mean, 0.0)

    def keys(self, event: Event) -> list[tuple[int, int]]:
        """Return the keys of an event's weights, with their kinds."""
        categories, words, numbers = event
        bins = [float(BINS)] * len(numbers)
        if self.learned >= BINNED_AFTER:
            bins = [
                float(sum(value > edge for edge in edges))
                for value, edges in zip(numbers, self.edges, strict=True)
            ]
        fields = [int(key_of(value, number)) for number, value in enumerate(categories)]
        behind = self.settings.fields + self.settings.words
        binned = [int(key_of(value, behind + number)) for number, value in enumerate(bins)]
        found = [(key, FIELD) for key in fields]
        found += [(int(key_of(word, self.settings.fields)), WORD) for word in words if word]
        found += [(key, BIN) for key in binned]
        every = fields + [0] * self.settings.words + binned
        for left, right, *third in self.settings.crossed:
            key = pair_of(np.uint64(every[left]), np.uint64(every[right]))
            for place in third:
                key = pair_of(np.uint64(key), np.uint64(every[place]))
            found.append((int(key), PAIR if [right, *third][-1] < len(fields) else BINNED_PAIR))
        return found

    def scores(self, event: Event, base: float = 0.0) -> list[float]:
        """Return the scores of the variants, that of the constant, and that of their mixture."""
        found = [each.score(self.keys(event), base) for each in self.variants]
        if self.settings.loss == "squared":
            found.append(self.total / max(self.labels, 1.0))
            return [*found, sum(w * s for w, s in zip(self.shares, found, strict=True))]
        p = (self.total + 0.5) / (self.labels + 1)
        found = [round(score, 6) for score in [*found, math.log(p / (1 - p))]]
        p = sum(w * probability(s) for w, s in zip(self.shares, found, strict=True))
        p = min(max(p, 1e-6), 1 - 1e-6)
        return [*found, round(math.log(p / (1 - p)), 6)]

    def learn(
        self, event: Event, predicted: list[float], label: float, importance: float = 1.0, base: float = 0.0
    ) -> None:
        """Learn a label of an event that had these scores when it was predicted."""
        self.reweigh(predicted, label, importance)
        value = max(label, 0.0) if self.settings.loss == "logistic" else label
        self.labels += importance
        self.total += importance * value
        self.squares += importance * value * value
        keys = self.keys(event)
        for variant in self.variants:
            variant.learn(keys, base, label, importance, self)
        if self.learned < BINNED_AFTER:
            self.first.append(event[2])
        self.learned += 1
        if self.learned == BINNED_AFTER:
            columns = [sorted(column) for column in zip(*self.first, strict=True)]
            places = [edge * BINNED_AFTER // BINS for edge in range(1, BINS)]
            self.edges = [[column[place] for place in places] for column in columns]

    def reweigh(self, predicted: list[float], label: float, importance: float) -> None:
        *scores, _ = predicted
        if self.settings.loss == "logistic":
            logs = [math.log(max(probability(label * score), 1e-12)) for score in scores]
        else:
            exact = sum(w * s for w, s in zip(self.shares, scores, strict=True))
            self.errors = 0.999 * self.errors + importance * (label - exact) ** 2
            self.error_count = 0.999 * self.error_count + importance
            variance = self.errors / self.error_count
            logs = [-((label - score) ** 2) / (2 * variance) if variance else 0.0 for score in scores]
        of = [max(math.exp(importance * (each - max(logs))), 1e-12) for each in logs]
        kept = [share * likelihood for share, likelihood in zip(self.shares, of, strict=True)]
        self.shares = [0.999 * each / sum(kept) + 0.001 / len(kept) for each in kept]
