"""An orthonormal basis of what some columns add to another basis, by Gram and Schmidt, twice."""

from __future__ import annotations

import math

import numpy as np

from forks.arrays import FloatArray
from forks.jit import ZERO, njit
from forks.linalg.vectors import EIGHT, EPSILON, dot, padded


def outside(basis: FloatArray, columns: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the part of ``columns`` outside of the span of ``basis``.

    Parameters
    ----------
    basis : ndarray, shape (n, k), float64
        Orthonormal columns.
    columns : ndarray, shape (n, c), float64
        Any columns.

    Returns
    -------
    ndarray, shape (n, at most c), float64
        Without directions in which what is left of the columns is rounding: at most max(n, c) ulp of their
        norm.

    References
    ----------
    Golub and Van Loan, Matrix Computations, 4th edition, 2013, section 5.2.7 (modified Gram-Schmidt).

    Examples
    --------
    >>> outside(np.array([[1.0], [0.0], [0.0]]), np.array([[5.0, 5.0], [2.0, 2.0], [0.0, 0.0]])).tolist()
    [[0.0], [1.0], [0.0]]
    """
    n, k = basis.shape
    rows = padded(np.concatenate([basis, columns], axis=1).T, EIGHT)
    found = _orthogonalize(rows, k, n)
    return rows[k:found, :n].T


@njit(cache=True)
def _orthogonalize(rows: FloatArray, known: int, n: int) -> int:
    """Make the rows after the first ``known`` ones orthonormal; return the number of rows that are.

    The longest row comes next. What is left of it is orthogonalized once more: where little is left, it is
    not orthogonal after the first time.
    """
    total = 0.0
    for i in range(known, rows.shape[0]):
        total += _squared(rows[i])
    negligible = max(n, rows.shape[0] - known) * EPSILON * math.sqrt(total)
    count = rows.shape[0]
    for i in range(known, count):
        _subtract_projections(rows, known, i)
    while known < count:
        longest, squared = known, -1.0
        for i in range(known, count):
            own = _squared(rows[i])
            if own > squared:
                longest, squared = i, own
        for j in range(rows.shape[1]):
            rows[known, j], rows[longest, j] = rows[longest, j], rows[known, j]
        _subtract_projections(rows, known, known)
        length = math.sqrt(_squared(rows[known]))
        if length <= negligible:
            count -= 1
            for j in range(rows.shape[1]):
                rows[known, j] = rows[count, j]
            continue
        for j in range(rows.shape[1]):
            rows[known, j] /= length
        known += 1
        for i in range(known, count):
            _subtract_projection(rows[known - 1], rows[i])
    return known


@njit(cache=True)
def _subtract_projections(rows: FloatArray, known: int, i: int) -> None:
    for j in range(known):
        _subtract_projection(rows[j], rows[i])


@njit(cache=True)
def _subtract_projection(direction: FloatArray, row: FloatArray) -> None:
    along = dot(direction, row, ZERO, row.shape[0])
    for j in range(row.shape[0]):
        row[j] -= along * direction[j]


@njit(cache=True)
def _squared(row: FloatArray) -> float:
    total: float = dot(row, row, ZERO, row.shape[0])
    return total
