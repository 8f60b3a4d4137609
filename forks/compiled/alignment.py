"""Memory in whole cache lines: matrices whose rows begin with one are read and written fastest.

A row that begins elsewhere has vectors that lie in two lines each, and at its end numbers that make no whole
vector. Together these cost the loops over small matrices up to half of their time.
"""

from __future__ import annotations

import numpy as np

from forks.arrays import FloatArray

LINE = 8
"""Numbers of a cache line of 64 bytes."""


def whole_lines(numbers: int) -> int:
    """Return the numbers in as many lines as so many numbers need.

    Examples
    --------
    >>> whole_lines(8), whole_lines(9)
    (8, 16)
    """
    return -(-numbers // LINE) * LINE


def line_memory(numbers: int) -> FloatArray:
    """Return zeros, (numbers,), that begin with a line."""
    memory = np.zeros(numbers + LINE)
    start = -(memory.ctypes.data // memory.itemsize) % LINE
    return memory[start : start + numbers]


def on_lines(matrix: FloatArray) -> FloatArray:
    """Return a copy whose rows begin with a line each; zeros fill up the lines.

    Examples
    --------
    >>> on_lines(np.ones((2, 3))).tolist()
    [[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    """
    rows, columns = matrix.shape
    copy = line_memory(rows * whole_lines(columns)).reshape(rows, whole_lines(columns))
    copy[:, :columns] = matrix
    return copy
