"""The numerical rank of a triangular matrix, by incremental condition estimation."""

from __future__ import annotations

import math

import numpy as np

from forks.arrays import FloatArray
from forks.jit import njit

UNSURE = -1
"""Returned in place of a rank that rounding could decide, or where LAPACK would scale the matrices."""

# The estimates of LAPACK and those here differ by rounding, relatively by much less than this.
MARGIN = 1e-6

SMALLEST, LARGEST = 1e-100, 1e100
"""Bounds of the largest absolute value, far within those outside of which LAPACK scales."""


@njit(cache=True, allocates=True)
def numerical_rank(R: FloatArray, right: FloatArray, cutoff: float) -> int:
    """Return the rank that LAPACK's `dgelsy` takes for a system with a triangular matrix, or `UNSURE`.

    Column by column, approximate singular vectors of the leading part give estimates of its smallest and its
    largest singular value. The rank is the number of columns up to the first one with which the smallest is
    below its share of the largest.

    Parameters
    ----------
    R : ndarray, shape (at least n, n), float64
        Matrix whose upper triangle is read, with the diagonal of a QR decomposition with pivoting.
    right : ndarray, shape (m, c), float64
        Right sides of the system.
    cutoff
        Share of the largest singular value below which the smallest counts as zero.

    References
    ----------
    Bischof, Incremental condition estimation, SIAM J. Matrix Anal. Appl. 11, 1990.

    Examples
    --------
    >>> numerical_rank(np.array([[2.0, 1.0], [0.0, 1e-9]]), np.ones((2, 1)), 1e-6)
    1
    >>> numerical_rank(np.array([[2.0, 1.0], [0.0, 1e-3]]), np.ones((2, 1)), 1e-6)
    2
    """
    n: int = R.shape[1]
    low = high = abs(R[0, 0])
    size = 0.0
    for j in range(right.shape[1]):
        for i in range(right.shape[0]):
            size = max(size, abs(right[i, j]))
    if not (SMALLEST < high < LARGEST and (size == 0.0 or SMALLEST < size < LARGEST)):
        return UNSURE
    lowest, highest = np.zeros(n), np.zeros(n)
    lowest[0] = highest[0] = 1.0
    for i in range(1, n):
        along_lowest = along_highest = 0.0
        for j in range(i):
            along_lowest += lowest[j] * R[j, i]
            along_highest += highest[j] * R[j, i]
        larger, sine, cosine = _largest(low, along_lowest, R[i, i])
        low *= abs(R[i, i]) / larger  # the product of both singular values is the determinant
        for j in range(i):
            lowest[j] *= -cosine
        lowest[i] = sine
        high, sine, cosine = _largest(high, along_highest, R[i, i])
        for j in range(i):
            highest[j] *= sine
        highest[i] = cosine
        if abs(low - cutoff * high) <= MARGIN * cutoff * high:
            return UNSURE
        if low < cutoff * high:
            return i
    return n


@njit(cache=True)
def _largest(estimate: float, along: float, diagonal: float) -> tuple[float, float, float]:
    """Return the largest singular value of [[estimate, along], [0, diagonal]] and its left vector's parts.

    The left vector of the other singular value is (-second part, first part).
    """
    first, both, second = estimate * estimate + along * along, along * diagonal, diagonal * diagonal
    apart = math.hypot(first - second, 2.0 * both)
    if first >= second:  # without a difference of nearly equal numbers
        sine, cosine = (first - second + apart) / 2.0, both
    else:
        sine, cosine = both, (second - first + apart) / 2.0
    length = math.hypot(sine, cosine)
    if length == 0.0:
        return math.sqrt(first), 1.0, 0.0
    return math.sqrt((first + second + apart) / 2.0), sine / length, cosine / length
