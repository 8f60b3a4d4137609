"""What the decompositions share: sums in a fixed order without fused operations, padding, and scaling.

Compiled functions are given the memory that they write, and indices instead of slices: both shorten the time
to compile them by much.
"""

from __future__ import annotations

import math

import numpy as np

from forks.arrays import FloatArray
from forks.compiled.simd import add, broadcast, horizontal_sum, load, multiply
from forks.jit import ZERO, njit

EIGHT = 8
"""Number of float64 in a vector of `forks.compiled.simd`."""
SIXTEEN = 16
"""Number of columns that loops take at a time: two vectors, neither of which waits for the other."""

EPSILON = 2.0**-52
"""Distance from 1 to the next float64."""
NEGLIGIBLE = 2.0**-600
"""Sums of squares up to this are taken for zero, where the largest number of a matrix is about 1: squares of
numbers below 2^-300 lose digits."""


def padded(matrix: FloatArray, block: int) -> FloatArray:
    """Return a copy of a matrix with columns of zeros behind, whose number is a multiple of ``block``.

    Examples
    --------
    >>> padded(np.ones((2, 1)), 4).tolist()
    [[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
    """
    rows, columns = matrix.shape
    out = np.zeros((rows, columns + -columns % block))
    out[:, :columns] = matrix
    return out


def power_of_two_near(matrix: FloatArray) -> float:
    """Return the largest power of two that is at most the largest absolute value; 1.0 if all are 0.

    Division by it changes no digit, and prevents overflow and underflow in squares.

    Raises
    ------
    ValueError
        ``matrix`` has an entry that is not finite.

    Examples
    --------
    >>> power_of_two_near(np.array([[-5.0, 0.1]])), power_of_two_near(np.zeros((1, 1)))
    (4.0, 1.0)
    """
    largest = float(np.abs(matrix).max(initial=0.0))
    if not math.isfinite(largest):
        raise ValueError("a matrix to decompose has infs or NaNs")
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0


@njit(cache=True)
def dot(u: FloatArray, v: FloatArray, start: int, stop: int) -> float:
    """Return the sum of the products of two vectors from ``start`` to ``stop``.

    There are eight sums, each of every eighth product; `forks.compiled.simd.horizontal_sum` adds them. The
    last products, fewer than eight, are then added one by one.

    Examples
    --------
    >>> dot(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]), 1, 3)
    5.0
    """
    whole = stop - (stop - start) % EIGHT
    sums = broadcast(0.0)
    for i in range(start, whole, EIGHT):
        sums = add(sums, multiply(load(u, i), load(v, i)))
    total: float = horizontal_sum(sums)
    for i in range(whole, stop):
        total += u[i] * v[i]
    return total


def norm(matrix: FloatArray) -> float:
    """Return the square root of the sum of the squares of all entries.

    Examples
    --------
    >>> norm(np.array([[3.0, 0.0], [4.0, 0.0]]))
    5.0
    """
    entries = np.ascontiguousarray(matrix).ravel()
    return math.sqrt(dot(entries, entries, ZERO, entries.size))
