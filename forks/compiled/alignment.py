"""Arrays aligned to cache lines, which the compiled loops read and write fastest.

In an unaligned matrix, vectors of a row span two cache lines each, and the numbers at its end do not fill a
vector. Together these cost the loops over small matrices up to half of their time.
"""

from __future__ import annotations

import numpy as np

from forks.arrays import FloatArray
from forks.jit import njit

CACHE_LINE = 8
"""Number of float64 in a cache line of 64 bytes."""


@njit(cache=True)
def padded_length(numbers: int) -> int:
    """Return ``numbers`` rounded up to whole cache lines.

    Examples
    --------
    >>> padded_length(8), padded_length(9)
    (8, 16)
    """
    return -(-numbers // CACHE_LINE) * CACHE_LINE


@njit(cache=True, allocates=True)
def aligned_zeros(numbers: int) -> FloatArray:
    """Return zeros, (numbers,), that begin at a cache line.

    It is compiled because Python needs several times as long to ask for an address.
    """
    memory = np.zeros(numbers + CACHE_LINE)
    start = (CACHE_LINE - memory.ctypes.data // memory.itemsize % CACHE_LINE) % CACHE_LINE
    return memory[start : start + numbers]


def aligned_rows(matrix: FloatArray) -> FloatArray:
    """Return a copy of ``matrix`` whose rows begin at cache lines and are padded with zeros.

    Examples
    --------
    >>> aligned_rows(np.ones((2, 3))).tolist()
    [[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    """
    rows, columns = matrix.shape
    length = padded_length(columns)
    copy = aligned_zeros(rows * length).reshape(rows, length)
    copy[:, :columns] = matrix
    return copy
