"""Histograms of durations and sizes, counted by one thread."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds for steps of the loop and for transactions."""
LONG_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""Bounds for latencies and for restores."""
STEPS: Final = (1.0, 10.0, 50.0, 100.0, 500.0, 1_000.0, 2_500.0, 5_000.0, 10_000.0, 100_000.0)
"""Bounds for sizes of batches."""


class HistogramFigures(NamedTuple):
    """What a histogram had counted at some moment."""

    bounds: Sequence[float]
    counts: tuple[int, ...]
    """Observations up to each bound and above the one before, then those above all bounds."""
    sum: float

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative buckets by their upper bound, as Prometheus has them.

        Examples
        --------
        >>> HistogramFigures((1.0, 5.0), (2, 0, 1), 9.5).buckets
        [('1.0', 2.0), ('5.0', 2.0), ('+Inf', 3.0)]
        """
        cumulative, total = [], 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += count
            cumulative.append((bound, float(total)))
        return cumulative


class Histogram:
    """Counts observations by bucket.

    Parameters
    ----------
    bounds
        Upper bounds of the buckets, ascending; each belongs to its bucket.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    @property
    def figures(self) -> HistogramFigures:
        """What was counted so far."""
        return HistogramFigures(self._bounds, tuple(self._counts), self._sum)
