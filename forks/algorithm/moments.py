"""Running moments of the columns (Welford, Technometrics 4, 1962), and standardisation with them."""

from __future__ import annotations

import math

from forks.arrays import FloatArray
from forks.jit import njit

# A column whose standard deviation is below this share of its mean is constant up to rounding.
CONSTANT = 1e-9
# Bound of standardised values: an outlier must not decide a score, nor the first events, whose moments are
# unreliable.
LIMIT = 10.0
# Divisor in place of a deviation of 0; smaller than any other deviation.
SMALLEST = 1e-300


@njit(cache=True)
def standardize(x: FloatArray, count: int, mean: FloatArray, squares: FloatArray, out: FloatArray) -> None:
    """Write (x - mean) / standard deviation, within +-`LIMIT`, to ``out``; 0 for columns that never varied.

    Parameters
    ----------
    x : ndarray, shape (columns,), float64
        Vector to standardise.
    count
        Number of vectors that the moments were made from.
    mean : ndarray, shape (columns,), float64
        Mean of these vectors.
    squares : ndarray, shape (columns,), float64
        Sums of their squared distances from the mean.
    out : ndarray, shape (columns,), float64
        Standardised vector; overwritten.
    """
    share = 1.0 / max(count, 1)
    for j in range(x.shape[0]):
        deviation = math.sqrt(squares[j] * share)
        # Without a branch or a division by zero, the compiler can use vector instructions.
        standard = min(max((x[j] - mean[j]) / max(deviation, SMALLEST), -LIMIT), LIMIT)
        out[j] = 0.0 if deviation <= CONSTANT * abs(mean[j]) else standard


@njit(cache=True)
def update_moments(x: FloatArray, count: int, mean: FloatArray, squares: FloatArray) -> None:
    """Add ``x``, the ``count``-th vector (from 1), to ``mean`` and ``squares``, all (columns,)."""
    share = 1.0 / count
    for j in range(x.shape[0]):
        before = x[j] - mean[j]
        mean[j] += before * share
        squares[j] += before * (x[j] - mean[j])
