"""Products of matrices in a fixed order of summation, without BLAS."""

from __future__ import annotations

import numpy as np

from forks.arrays import FloatArray
from forks.compiled.alignment import CACHE_LINE
from forks.compiled.products import matmul
from forks.linalg.vectors import padded


def product(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return A B, (m, c), for A (m, n) and B (n, c); each number is summed from the first of n to the last.

    Examples
    --------
    >>> product(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])).tolist()
    [[11.0]]
    """
    rows = padded(B, CACHE_LINE)
    out = np.empty((len(A), rows.shape[1]))
    matmul(np.ascontiguousarray(A), rows, out)
    return np.ascontiguousarray(out[:, : B.shape[1]])
