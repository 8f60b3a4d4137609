"""Mean, deviation and standard error over runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from forks.arrays import FloatArray


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


def mean_and_error(values: Sequence[float] | FloatArray, *, digits: int = 2) -> dict[str, float]:
    """Return mean and standard error of the mean of values over runs; an error of 0 for one run.

    Examples
    --------
    >>> mean_and_error([1.0, 3.0])
    {'mean': 2.0, 'error': 1.0}
    """
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    mean, error = float(np.mean(values)), spread / math.sqrt(len(values))
    return {"mean": round(mean, digits), "error": round(error, digits)}
