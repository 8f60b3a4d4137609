"""Memory in whole cache lines: matrices whose rows begin with one are read and written fastest.

A row that begins elsewhere has vectors that lie in two lines each, and at its end numbers that make no whole
vector. Together these cost the loops over small matrices up to half of their time.
"""

from __future__ import annotations

import numpy as np

from forks.arrays import FloatArray

CACHE_LINE = 8
"""Numbers of a cache line of 64 bytes."""


def padded_length(numbers: int) -> int:
    """Return the numbers in as many lines as so many numbers need.

    Examples
    --------
    >>> padded_length(8), padded_length(9)
    (8, 16)
    """
    return -(-numbers // CACHE_LINE) * CACHE_LINE


def aligned_zeros(numbers: int) -> FloatArray:
    """Return zeros, (numbers,), that begin with a line."""
    memory = np.zeros(numbers + CACHE_LINE)
    start = -(memory.ctypes.data // memory.itemsize) % CACHE_LINE
    return memory[start : start + numbers]


def aligned_rows(matrix: FloatArray) -> FloatArray:
    """Return a copy whose rows begin with a line each; zeros fill up the lines.

    Examples
    --------
    >>> aligned_rows(np.ones((2, 3))).tolist()
    [[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    """
    rows, columns = matrix.shape
    copy = aligned_zeros(rows * padded_length(columns)).reshape(rows, padded_length(columns))
    copy[:, :columns] = matrix
    return copy
