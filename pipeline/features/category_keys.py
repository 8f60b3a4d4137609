"""The keys that categories and numbers of a message have in tables of running statistics.

A category is named by what predictions carry of it: its column or its hash. A number counts by the bin of its
logarithm, two for each doubling of one more than its magnitude: so nothing has to be known of its range.
"""

from __future__ import annotations

import math
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.config.feature_layout import Part
from pipeline.config.stream_features import MAX_NUMBER

Floats: TypeAlias = NDArray[np.float64]

MAX_KEY: Final = 2.0**32
"""Larger values, which no message gives, count as this one."""
_PER_LOG: Final = 2.0 / float.fromhex("0x1.62e42fefa39efp-1")
"""Bins in each unit of the natural logarithm: two over the logarithm of 2."""
_ROUNDING: Final = 0.5e-6
"""How far below the edge of a bin a number may come because its logarithm is rounded to six decimals."""
_ROOT: Final = math.sqrt(0.5)


def category_keys(part: Part, values: Floats) -> list[int]:
    """Return the keys of a category or a number, given its values as predictions carry them, shape (n,).

    Examples
    --------
    >>> plain, logarithm = Part(False, 0, "number"), Part(False, 0, "logarithm")
    >>> category_keys(plain, np.array([0.0, 0.5, 1.0, 2.0, 7.0, -7.0]))
    [0, 1, 2, 3, 6, -6]
    >>> category_keys(logarithm, np.array([0.0, 0.405465, 0.693147, -2.079442]))
    [0, 1, 2, -6]
    >>> category_keys(Part(False, 0), np.array([3.0]))
    [3]
    """
    if part.bins is not None:
        magnitudes = np.minimum(np.abs(values), MAX_NUMBER)  # outputs may be anyone's
        values = np.copysign(_bins(magnitudes, part.bins), values)
    keys: list[int] = np.clip(values, -MAX_KEY, MAX_KEY).astype(np.int64).tolist()
    return keys


def _bins(magnitudes: Floats, kind: Literal["number", "logarithm"]) -> Floats:
    """Return the bins of numbers that are not negative: those of numbers are found without a logarithm."""
    if kind == "logarithm":
        of_logarithms: Floats = np.floor((magnitudes + _ROUNDING) * _PER_LOG)
        return of_logarithms
    fractions, exponents = np.frexp(1.0 + magnitudes)
    bins: Floats = 2.0 * (exponents - 1.0) + (fractions >= _ROOT)
    return bins
