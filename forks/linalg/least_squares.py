"""Least squares by LAPACK, for the small matrices of a change of the map.

The checks in SciPy's `lstsq` take longer than the solution of such small systems.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dgelsy, dpocon, dpotrf, dpotrs

from forks.arrays import FloatArray

# LAPACK's block size; its workspace query returns too little for blocks of this size.
BLOCK = 64


def least_squares(A: FloatArray, B: FloatArray, cutoff: float) -> FloatArray:
    """Return X = argmin |A X - B|_F, the one of least norm if there are several.

    Parameters
    ----------
    A : ndarray, shape (m, n), float64
        Finite matrix.
    B : ndarray, shape (m, c), float64
        Finite right sides, one per column.
    cutoff
        Share of the largest singular value of ``A`` below which a singular value counts as zero, as estimated
        by a QR decomposition with pivoting.

    Returns
    -------
    ndarray, shape (n, c), float64
        The solution, C-contiguous.

    Examples
    --------
    >>> least_squares(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([[2.0], [4.0]]), 1e-6).round(6).tolist()
    [[1.5], [1.5]]
    """
    rows, columns = A.shape
    right = np.zeros((max(rows, columns), B.shape[1]), order="F")
    right[:rows] = B
    _, X, *_ = dgelsy(
        np.array(A, order="F"),
        right,
        np.zeros((columns, 1), dtype=np.int32),
        cutoff,
        BLOCK * (2 * columns + B.shape[1] + BLOCK + 1),
        overwrite_a=True,
        overwrite_b=True,
    )
    return np.ascontiguousarray(X[:columns])


def plain_least_squares(A: FloatArray, B: FloatArray, cutoff: float) -> FloatArray:
    """Return `least_squares`, at a fifth of its cost if no singular value of ``A`` is below the cutoff.

    In this case the Cholesky factor of A'A, whose condition is the square of that of A, solves A'A X = A'B.
    The relative error is at most the rounding error divided by the square of the cutoff: 1e-3 leaves ten
    digits.

    Examples
    --------
    >>> plain_least_squares(np.array([[1.0], [1.0]]), np.array([[2.0], [4.0]]), 1e-3).round(6).tolist()
    [[3.0]]
    """
    gram = A.T @ A
    factor, fault = dpotrf(gram, lower=True)
    if fault == 0:
        inverse_condition, _ = dpocon(factor, np.abs(gram).sum(axis=0).max(), uplo="L")
        if inverse_condition >= cutoff * cutoff:
            X, _ = dpotrs(factor, A.T @ B, lower=True)
            return np.ascontiguousarray(X)
    return least_squares(A, B, cutoff)
