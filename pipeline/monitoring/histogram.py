"""Histograms of durations and sizes, with buckets as Prometheus has them."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import Final, NamedTuple

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds for steps of the loop and for transactions."""
LONG_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""Bounds for latencies and for restores."""
STEPS: Final = (1.0, 10.0, 50.0, 100.0, 500.0, 1_000.0, 2_500.0, 5_000.0, 10_000.0, 100_000.0)
"""Bounds for sizes of batches."""


class Histogram(NamedTuple):
    """Observations counted by bucket.

    It is never changed, so that another thread can read it, and so that an earlier one can be subtracted. The
    histogram of prometheus_client offers neither.
    """

    bounds: tuple[float, ...]
    """Upper bounds of the buckets, ascending; each belongs to its bucket."""
    counts: tuple[int, ...]
    """Observations by bucket, then those above all bounds."""
    sum: float = 0.0

    @classmethod
    def empty(cls, bounds: tuple[float, ...]) -> Histogram:
        """Return a histogram without observations."""
        return cls(bounds, (0,) * (len(bounds) + 1))

    def observe(self, *values: float) -> Histogram:
        """Return the histogram with further observations."""
        counts, total = [*self.counts], self.sum
        for value in values:
            counts[bisect_left(self.bounds, value)] += 1
            total += value
        return Histogram(self.bounds, tuple(counts), total)

    def since(self, before: Histogram) -> Histogram:
        """Return what was observed after an earlier moment."""
        counts = tuple(now - then for now, then in zip(self.counts, before.counts, strict=True))
        return Histogram(self.bounds, counts, self.sum - before.sum)

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative buckets by their upper bound.

        Examples
        --------
        >>> Histogram.empty((1.0, 5.0)).observe(0.5, 1.0, 8.0).buckets
        [('1.0', 2.0), ('5.0', 2.0), ('+Inf', 3.0)]
        """
        return [*zip((*map(str, self.bounds), "+Inf"), accumulate(map(float, self.counts)), strict=True)]

    def quantile(self, share: float) -> float | None:
        """Return a quantile, as `histogram_quantile` of Prometheus does.

        Parameters
        ----------
        share
            Which quantile, from 0 to 1.

        Returns
        -------
        float or None
            None where there are no observations, or where the quantile is above all bounds.

        Examples
        --------
        >>> histogram = Histogram((1.0, 3.0), (2, 2, 0))
        >>> histogram.quantile(0.5), histogram.quantile(0.75)
        (1.0, 2.0)
        >>> Histogram((1.0, 3.0), (1, 0, 9)).quantile(0.5) is None
        True
        """
        rank, below, lower = share * sum(self.counts), 0, 0.0
        for count, upper in zip(self.counts, self.bounds, strict=False):
            if count and below + count >= rank:
                return min(upper, lower + (upper - lower) * (rank - below) / count)
            below, lower = below + count, upper
        return None
