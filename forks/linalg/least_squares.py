"""Least squares by LAPACK, for the small matrices of a change of the map.

The checks in SciPy's `lstsq` take longer than the solution of such small systems, and those in LAPACK's
`dgelsy`, one call for each number, a fifth of it.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dgelsy, dgeqp3, dormqr, dormrz, dpocon, dpotrf, dpotrs, dtzrzf

from forks.arrays import FloatArray
from forks.linalg.rank import UNSURE, numerical_rank

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
    if rows < columns:
        return _checked_least_squares(A, B, cutoff)
    # The steps of `dgelsy`, whose bits these are.
    space = _space(A, B)
    R, pivots, scales, *_ = dgeqp3(np.array(A, order="F"), lwork=space, overwrite_a=True)
    right = np.array(B, order="F")
    rank = numerical_rank(R, right, cutoff)
    if rank == UNSURE:
        return _checked_least_squares(A, B, cutoff)
    right, *_ = dormqr("L", "T", R, scales, right, space, overwrite_c=True)
    if rank == columns:
        solution = dtrsm(1.0, R[:columns], right[:columns], overwrite_b=True)
    else:
        # The leading rows become a triangle and zeros by an orthogonal transform of the unknowns.
        triangle, scales, _ = dtzrzf(R[:rank], lwork=space)
        solution = np.zeros((columns, B.shape[1]), order="F")
        solution[:rank] = dtrsm(1.0, triangle[:, :rank], right[:rank], overwrite_b=True)
        solution, _ = dormrz(triangle, scales, solution, trans="T", lwork=space, overwrite_c=True)
    X = np.empty((columns, B.shape[1]))
    X[pivots - 1] = solution
    return X


def _checked_least_squares(A: FloatArray, B: FloatArray, cutoff: float) -> FloatArray:
    """Return `least_squares` of matrices of any shape and scale."""
    rows, columns = A.shape
    right = np.zeros((max(rows, columns), B.shape[1]), order="F")
    right[:rows] = B
    _, X, *_ = dgelsy(
        np.array(A, order="F"),
        right,
        np.zeros((columns, 1), dtype=np.int32),
        cutoff,
        _space(A, B),
        overwrite_a=True,
        overwrite_b=True,
    )
    return np.ascontiguousarray(X[:columns])


def _space(A: FloatArray, B: FloatArray) -> int:
    """Return how many float64 of scratch memory suffice for whole blocks."""
    space: int = BLOCK * (2 * A.shape[1] + B.shape[1] + BLOCK + 1)
    return space


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
