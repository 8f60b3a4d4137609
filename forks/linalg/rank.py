"""Singular values of a growing triangular matrix, by incremental condition estimation."""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

import math

from forks.arrays import FloatArray
from forks.jit import ZERO, njit
from forks.linalg.vectors import dot


@njit(cache=True)
def with_column(
    smallest: float,
    largest: float,
    column: FloatArray,
    k: int,
    diagonal: float,
    lowest: FloatArray,
    highest: FloatArray,
) -> tuple[float, float]:
    """Return estimates of the smallest and the largest singular value with one more column.

    Parameters
    ----------
    smallest, largest
        Estimates for the k columns so far; anything if there are none.
    column : ndarray, shape (at least k,), float64
        The new column, whose first k numbers stand above the diagonal.
    k
        Number of columns so far.
    diagonal
        The new column's number on the diagonal. The largest of all is to be between 1e-100 and 1e100.
    lowest, highest : ndarray, shape (more than k,), float64
        Approximate left singular vectors of both values; changed.

    Returns
    -------
    tuple of float
        The smallest one, which is not below the true one but for rounding, and the largest one, which is not
        above it.

    References
    ----------
    Bischof, Incremental condition estimation, SIAM J. Matrix Anal. Appl. 11, 1990.
    """
    if k == 0:
        lowest[0] = highest[0] = 1.0
        return abs(diagonal), abs(diagonal)
    larger, sine, cosine = _largest(smallest, dot(column, lowest, ZERO, k), diagonal)
    # The product of both singular values of the matrix of two columns is its determinant.
    smallest = smallest * (abs(diagonal) / larger) if larger > 0.0 else 0.0
    for j in range(k):
        lowest[j] *= -cosine
    lowest[k] = sine
    largest, sine, cosine = _largest(largest, dot(column, highest, ZERO, k), diagonal)
    for j in range(k):
        highest[j] *= sine
    highest[k] = cosine
    return smallest, largest


@njit(cache=True)
def _largest(estimate: float, along: float, diagonal: float) -> tuple[float, float, float]:
    """Return the largest singular value of [[estimate, along], [0, diagonal]] and its left vector's parts.

    The left vector of the other singular value is (-second part, first part).
    """
    first, both, second = estimate * estimate + along * along, along * diagonal, diagonal * diagonal
    apart = math.sqrt((first - second) * (first - second) + 4.0 * both * both)
    if first >= second:  # without a difference of nearly equal numbers
        sine, cosine = (first - second + apart) / 2.0, both
    else:
        sine, cosine = both, (second - first + apart) / 2.0
    length = math.sqrt(sine * sine + cosine * cosine)
    if length == 0.0:
        return math.sqrt(first), 1.0, 0.0
    return math.sqrt((first + second + apart) / 2.0), sine / length, cosine / length
