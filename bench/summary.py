"""Mean and deviation over runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def percent(shares: Sequence[float]) -> dict[str, float]:
    """Return mean and standard deviation of shares over runs, in percent.

    Examples
    --------
    >>> percent([0.25, 0.75])
    {'mean': 50.0, 'deviation': 25.0}
    """
    return mean_and_deviation([100.0 * share for share in shares], digits=3)


def mean_and_deviation(values: Sequence[float], *, digits: int = 4) -> dict[str, float]:
    """Return mean and standard deviation of values over runs."""
    return {"mean": round(float(np.mean(values)), digits), "deviation": round(float(np.std(values)), digits)}
