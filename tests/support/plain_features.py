"""Running features that a definition declares, slow and plain: what the compiled ones are compared with."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import mul
from typing import Any

from pipeline.config.feature_layout import FeatureLayout, TableLayout
from pipeline.features.binary import BinaryTarget
from pipeline.records.fields import Id

PRIOR = 10.0
NEVER = 30 * 86_400
"""Seconds since the last event of what has had none."""


@dataclass
class History:
    """The labels of a key: time in milliseconds, whether positive, and value."""

    labels: list[tuple[int, bool, float]] = field(default_factory=list)
    residuals: list[float] = field(default_factory=list)
    """What was left of the signal of each."""

    def sums(self) -> tuple[float, float, float]:
        return (
            float(len(self.labels)),
            float(sum(label for _, label, _ in self.labels)),
            math.fsum(value for *_, value in self.labels),
        )

    def recent(self, now: int, half_life: int) -> tuple[float, float, float, float]:
        """Return sums with weights that halve with each half-life, from the newest event on."""
        newest = max((time for time, *_ in self.labels), default=0)
        now = max(now, newest)
        weights = [0.5 ** ((now - time) / half_life) for time, *_ in self.labels]
        pairs = list(zip(weights, self.labels, strict=True))
        return (
            math.fsum(weights),
            math.fsum(weight * label for weight, (_, label, _) in pairs),
            math.fsum(weight * value for weight, (_, _, value) in pairs),
            math.fsum(map(mul, weights, self.residuals)),
        )


class PlainFeatures:
    """Keeps every label, and sums all of them for each feature."""

    def __init__(self, layout: FeatureLayout, limit: int, target: BinaryTarget) -> None:
        self._layout, self._limit, self._target = layout, limit, target
        self._tables: list[OrderedDict[Any, History]] = [OrderedDict() for _ in layout.tables]
        self._everything = History()

    def update(
        self,
        ids: Sequence[Id],
        label: bool,
        value: float,
        time: int,
        values: Sequence[float],
        *,
        expected: float = 0.0,
    ) -> None:
        residual = min(max(self._target.signal(value) - expected, -2.0), 2.0)
        new = (time, label, self._target.summand(value))
        self._everything.labels.append(new)
        for layout, table in zip(self._layout.tables, self._tables, strict=True):
            key = _key(layout, ids, values)
            table[key] = table.pop(key, History())
            table[key].labels.append(new)
            table[key].residuals.append(residual)
            if len(table) > self._limit:
                table.popitem(last=False)

    def features(self, ids: Sequence[Id], time: int, values: Sequence[float]) -> list[float]:
        events, labels, sums = self._everything.sums()
        prior = (labels + 0.5) / (events + 1.0), (sums + 0.5) / (events + 1.0)
        own = [
            table.get(_key(layout, ids, values), History())
            for layout, table in zip(self._layout.tables, self._tables, strict=True)
        ]
        return [
            known.get(feature, math.nan)
            for layout, history in zip(self._layout.tables, own, strict=True)
            for known in [_known(layout, history, own, prior, time)]
            for feature in layout.features
        ]


def _key(layout: TableLayout, ids: Sequence[Id], values: Sequence[float]) -> tuple[Any, ...]:
    return tuple(
        ids[part.place] if part.entity else _category(values[part.place], part.bins) for part in layout.parts
    )


def _category(value: float, bins: str | None) -> float:
    """Return a category, or the bin of a number."""
    if bins is None:
        return value
    logarithm = abs(value) if bins == "logarithm" else math.log1p(abs(value))
    return math.copysign(math.floor(1e-6 + 2.0 * logarithm / math.log(2.0)), value)


def _known(
    layout: TableLayout, own: History, every: list[History], prior: tuple[float, float], time: int
) -> dict[str, float]:
    """Return the features of a key by name; those of effects are missing."""
    events, labels, sums = own.sums()
    group = History() if layout.leans_on is None else every[layout.leans_on]
    others, other_labels, other_sums = group.sums()
    recent, recent_labels, recent_sums, residuals = own.recent(time, layout.half_life or 1)
    newest = max((at for at, *_ in own.labels), default=time - 1_000 * NEVER)
    mean = _mean(labels, events, prior[0])
    return {
        "label_mean": mean,
        "label_logit": math.log(mean / (1.0 - mean)),
        "value_mean": _mean(sums, events, prior[1]),
        "log_count": math.log1p(events),
        "leaning_label_mean": _mean(labels, events, _mean(other_labels, others, prior[0])),
        "leaning_value_mean": _mean(sums, events, _mean(other_sums, others, prior[1])),
        "recent_label_mean": _mean(recent_labels, recent, prior[0]),
        "recent_value_mean": _mean(recent_sums, recent, prior[1]),
        "recent_residual": residuals / (recent + 1.0),
        "log_recent_count": math.log1p(recent),
        "log_since_last": math.log1p(max(0, time - newest) / 1_000),
    }


def _mean(total: float, events: float, prior: float) -> float:
    return (total + PRIOR * prior) / (events + PRIOR)
