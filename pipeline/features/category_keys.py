"""The keys that categories and numbers of a message have in tables of running statistics.

A category is named by what predictions carry of it: its column or its hash. A number counts by the bin of its
logarithm, two for each doubling of one more than its magnitude: so nothing has to be known of its range.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.config.feature_layout import Part

Floats: TypeAlias = NDArray[np.float64]

MAX_KEY: Final = 2.0**32
"""Larger values, which no message gives, count as this one."""
_PER_LOG: Final = 2.0 / math.log(2.0)
"""Bins in each unit of the natural logarithm."""
_ROOT: Final = math.sqrt(0.5)


def category_keys(part: Part, values: Floats) -> list[int]:
    """Return the keys of a category or a number, given its values as predictions carry them, shape (n,).

    Examples
    --------
    >>> plain, logarithm = Part(False, 0, "number"), Part(False, 0, "logarithm")
    >>> category_keys(plain, np.array([0.0, 0.5, 1.0, 2.0, 7.0, -7.0]))
    [0, 1, 2, 3, 6, -6]
    >>> category_keys(logarithm, np.log1p([0.0, 0.5, 2.0])), category_keys(Part(False, 0), np.array([3.0]))
    ([0, 1, 3], [3])
    """
    if part.bins is not None:
        values = np.trunc(values * _PER_LOG) if part.bins == "logarithm" else _bins(values)
    keys: list[int] = np.clip(values, -MAX_KEY, MAX_KEY).astype(np.int64).tolist()
    return keys


def _bins(values: Floats) -> Floats:
    """Return the bins of numbers, found without a logarithm."""
    fractions, exponents = np.frexp(1.0 + np.abs(values))
    bins: Floats = np.copysign(2.0 * (exponents - 1.0) + (fractions >= _ROOT), values)
    return bins
