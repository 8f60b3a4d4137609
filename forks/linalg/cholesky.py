"""Cholesky's decomposition of a positive definite matrix, and solutions by it, in a fixed order."""

from __future__ import annotations

import math

import numpy as np

from forks.arrays import FloatArray
from forks.compiled.simd import broadcast, load, multiply, store, subtract
from forks.jit import njit
from forks.linalg.rank import with_column
from forks.linalg.vectors import EIGHT, SIXTEEN, padded


def cholesky(matrix: FloatArray, cutoff: float) -> tuple[FloatArray, bool]:
    """Return the factor R, (n, n) and upper triangular, of a symmetric matrix R'R.

    Parameters
    ----------
    matrix : ndarray, shape (n, n), float64
        Finite symmetric matrix; only the upper triangle is read.
    cutoff
        Least share of the largest singular value of R that the smallest one may have, as estimated.

    Returns
    -------
    tuple of ndarray and bool
        The factor, and whether it is whole. It is not if the matrix is not positive definite or beyond the
        cutoff.

    Examples
    --------
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]), 1e-3)
    (array([[2., 1.],
           [0., 2.]]), True)
    """
    n = len(matrix)
    R = np.triu(matrix)
    whole: bool = _factorize(R, cutoff, np.zeros((3, n)))
    return R, whole


def solve_factored(R: FloatArray, B: FloatArray) -> FloatArray:
    """Return X with R'R X = B, (n, c), for the factor R of `cholesky` and right sides B (n, c).

    Examples
    --------
    >>> solve_factored(np.array([[2.0, 1.0], [0.0, 2.0]]), np.array([[4.0], [2.0]])).tolist()
    [[1.0], [0.0]]
    """
    X = padded(B, SIXTEEN)
    _solve(R, X)
    return np.ascontiguousarray(X[:, : B.shape[1]])


@njit(cache=True)
def _factorize(rows: FloatArray, cutoff: float, scratch: FloatArray) -> bool:
    """Make the upper triangle of a matrix the factor, in place; return whether all of it could be written."""
    above, lowest, highest = scratch[0], scratch[1], scratch[2]
    n = rows.shape[0]
    smallest = largest = 0.0
    for k in range(n):
        row = rows[k]
        if not row[k] > 0.0:
            return False
        root = math.sqrt(row[k])
        for j in range(k):
            above[j] = rows[j, k]
        smallest, largest = with_column(smallest, largest, above, k, root, lowest, highest)
        if smallest < cutoff * largest:
            return False
        row[k] = root
        for j in range(k + 1, n):
            row[j] /= root
        for i in range(k + 1, n):
            factor, lower = row[i], rows[i]
            for j in range(i, n):
                lower[j] -= factor * row[j]
    return True


@njit(cache=True)
def _solve(R: FloatArray, X: FloatArray) -> None:
    """Replace ``X``, (n, c) with c a multiple of 16, by the solution of R'R X = X."""
    n = R.shape[0]
    for c in range(0, X.shape[1], SIXTEEN):
        d = c + EIGHT
        for i in range(n):
            first, second = load(X, (i, c)), load(X, (i, d))
            for j in range(i):
                factor = broadcast(R[j, i])
                first = subtract(first, multiply(factor, load(X, (j, c))))
                second = subtract(second, multiply(factor, load(X, (j, d))))
            inverse = broadcast(1.0 / R[i, i])
            store(X, (i, c), multiply(first, inverse))
            store(X, (i, d), multiply(second, inverse))
        for i in range(n - 1, -1, -1):
            first, second = load(X, (i, c)), load(X, (i, d))
            for j in range(i + 1, n):
                factor = broadcast(R[i, j])
                first = subtract(first, multiply(factor, load(X, (j, c))))
                second = subtract(second, multiply(factor, load(X, (j, d))))
            inverse = broadcast(1.0 / R[i, i])
            store(X, (i, c), multiply(first, inverse))
            store(X, (i, d), multiply(second, inverse))
