"""Least squares with a decision on the rank: reflections with pivoting, or the normal equations.

As in `forks.linalg.eigen`, loops are compiled and have a fixed order, without fused operations. Matrices are
worked on as their transpose, so that a column is contiguous.

References
----------
Golub and Van Loan, Matrix Computations, 4th edition, 2013, sections 5.4 (pivoting) and 5.5 (complete
orthogonal decomposition); Bischof, Incremental condition estimation, SIAM J. Matrix Anal. Appl. 11, 1990.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

import math

import numpy as np

from forks.arrays import FloatArray, IntArray
from forks.compiled.simd import add, broadcast, horizontal_sum, load, multiply, store, subtract
from forks.jit import ZERO, njit
from forks.linalg.cholesky import cholesky, solve_factored
from forks.linalg.products import product
from forks.linalg.rank import with_column
from forks.linalg.vectors import EIGHT, NEGLIGIBLE, dot, padded, power_of_two_near

CANCELLED = 2.0**-26
"""Share of a squared length below which what is left of it after subtractions is summed anew."""


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
        The solution, C-contiguous; infinite where a number is beyond float64.

    Examples
    --------
    >>> least_squares(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([[2.0], [4.0]]), 1e-6).round(6).tolist()
    [[1.5], [1.5]]
    """
    n, c = A.shape[1], B.shape[1]
    scale, scale_of_right = power_of_two_near(A), power_of_two_near(B)
    columns, right = padded(A.T / scale, EIGHT), padded(B.T / scale_of_right, EIGHT)
    pivots, scratch = np.arange(n), np.zeros((5, max(n, columns.shape[1])))
    triangle = np.zeros((n, n))
    rank = _triangularize(columns, right, len(A), cutoff, pivots, triangle, scratch)
    solution = np.zeros((c, n + -n % EIGHT))
    solution[:, :rank] = right[:, :rank]
    if rank == n:
        _solve_triangle(triangle, solution)
    elif rank:
        upper = padded(triangle.T[:rank], EIGHT)
        _solve_trapezoid(upper, np.zeros_like(upper), scratch, solution)
    X = np.empty((n, c))
    with np.errstate(over="ignore"):
        X[pivots] = solution[:, :n].T / scale * scale_of_right
    return X


def plain_least_squares(A: FloatArray, B: FloatArray, cutoff: float) -> FloatArray:
    """Return `least_squares`, at a fraction of its cost if no singular value of ``A`` is below the cutoff.

    In this case the Cholesky factor of A'A, whose condition is the square of that of A, solves A'A X = A'B.
    The relative error is at most the rounding error divided by the square of the cutoff: 1e-3 leaves ten
    digits.

    Examples
    --------
    >>> plain_least_squares(np.array([[1.0], [1.0]]), np.array([[2.0], [4.0]]), 1e-3).round(6).tolist()
    [[3.0]]
    """
    factor, well_conditioned = cholesky(product(A.T, A), cutoff)
    if not well_conditioned:
        return least_squares(A, B, cutoff)
    return solve_factored(factor, product(A.T, B))


@njit(cache=True)
def _triangularize(
    columns: FloatArray,
    right: FloatArray,
    rows: int,
    cutoff: float,
    pivots: IntArray,
    triangle: FloatArray,
    scratch: FloatArray,
) -> int:
    """Make the leading columns of a matrix upper triangular by reflections; return its numerical rank.

    The longest column that is left comes next. With it, the smallest singular value of the leading columns is
    estimated; the rank is the number of columns before it falls below its share of the largest one.

    Parameters
    ----------
    columns : ndarray, shape (n, m), float64
        Columns of the matrix, padded with zeros so that m is a multiple of 8. Overwritten.
    right : ndarray, shape (c, m), float64
        Vectors that are reflected too.
    rows
        Number of rows of the matrix.
    cutoff
        Share of the largest singular value.
    pivots : ndarray, shape (n,), int64
        The columns' numbers; permuted as they are.
    triangle : ndarray, shape (n, n), float64
        Zeros; overwritten by the columns' numbers in the triangle, or above it, one column a row.
    scratch : ndarray, shape (5, at least n and m), float64
        Memory to write to.
    """
    lowest, highest, left, summed, vector = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    n = columns.shape[0]
    for j in range(n):
        left[j] = summed[j] = dot(columns[j], columns[j], ZERO, rows)
    smallest = largest = 0.0
    rank = 0
    for k in range(min(n, rows)):
        longest = k
        for j in range(k + 1, n):
            if left[j] > left[longest]:
                longest = j
        for i in range(rows):
            columns[k, i], columns[longest, i] = columns[longest, i], columns[k, i]
        pivots[k], pivots[longest] = pivots[longest], pivots[k]
        left[longest], summed[longest] = left[k], summed[k]
        for i in range(columns.shape[1]):
            vector[i] = 0.0 if i < k else columns[k, i]
        diagonal, half = _reflection(vector, k, rows)
        if half == 0.0:
            break
        smallest, largest = with_column(smallest, largest, columns[k], k, diagonal, lowest, highest)
        if smallest < cutoff * largest:
            break
        columns[k, k] = diagonal
        rank = k + 1
        _reflect(columns, rank, vector, k, half)
        _reflect(right, ZERO, vector, k, half)
        for j in range(k + 1, n):
            left[j] -= columns[j, k] * columns[j, k]
            if left[j] < CANCELLED * summed[j]:
                left[j] = summed[j] = dot(columns[j], columns[j], k + 1, rows)
    for j in range(n):
        for i in range(min(j + 1, rank)):
            triangle[j, i] = columns[j, i]
    return rank


@njit(cache=True)
def _reflection(x: FloatArray, first: int, stop: int) -> tuple[float, float]:
    """Make part of ``x`` the vector v of the reflection I - v v' / h that leaves only its first number.

    Returns
    -------
    tuple of float
        This number, and h = v'v / 2; 0 and 0 if the part is zero.
    """
    squared = dot(x, x, first, stop)
    if squared <= NEGLIGIBLE:
        return 0.0, 0.0
    length = math.sqrt(squared)
    half = squared + abs(x[first]) * length
    reflected = -length if x[first] > 0.0 else length
    x[first] -= reflected
    return reflected, half


@njit(cache=True)
def _reflect(rows: FloatArray, begin: int, vector: FloatArray, first: int, half: float) -> None:
    """Reflect the ``rows``, (n, m), from number ``begin`` on by ``vector``, (m,).

    The vector is zero before ``first``, and m is a multiple of 8. Four rows at a time do not wait for each
    other's sums; each has the bits that it would have alone.
    """
    first -= first % EIGHT
    fours = begin + (rows.shape[0] - begin) // 4 * 4
    for i in range(begin, fours, 4):
        a = b = c = d = broadcast(0.0)
        for j in range(first, rows.shape[1], EIGHT):
            v = load(vector, j)
            a = add(a, multiply(load(rows, (i, j)), v))
            b = add(b, multiply(load(rows, (i + 1, j)), v))
            c = add(c, multiply(load(rows, (i + 2, j)), v))
            d = add(d, multiply(load(rows, (i + 3, j)), v))
        a, b = broadcast(horizontal_sum(a) / half), broadcast(horizontal_sum(b) / half)
        c, d = broadcast(horizontal_sum(c) / half), broadcast(horizontal_sum(d) / half)
        for j in range(first, rows.shape[1], EIGHT):
            v = load(vector, j)
            store(rows, (i, j), subtract(load(rows, (i, j)), multiply(a, v)))
            store(rows, (i + 1, j), subtract(load(rows, (i + 1, j)), multiply(b, v)))
            store(rows, (i + 2, j), subtract(load(rows, (i + 2, j)), multiply(c, v)))
            store(rows, (i + 3, j), subtract(load(rows, (i + 3, j)), multiply(d, v)))
    for i in range(fours, rows.shape[0]):
        row = rows[i]
        along = broadcast(dot(row, vector, first, row.shape[0]) / half)
        for j in range(first, row.shape[0], EIGHT):
            store(row, j, subtract(load(row, j), multiply(along, load(vector, j))))


@njit(cache=True)
def _solve_triangle(triangle: FloatArray, solution: FloatArray) -> None:
    """Replace each row y of ``solution`` by x with R x = y; ``triangle`` has the columns of R as rows."""
    for c in range(solution.shape[0]):
        x = solution[c]
        for k in range(triangle.shape[0] - 1, -1, -1):
            column = triangle[k]
            x[k] /= column[k]
            number = x[k]
            for i in range(k):
                x[i] -= number * column[i]


@njit(cache=True)
def _solve_trapezoid(
    rows: FloatArray, vectors: FloatArray, scratch: FloatArray, solution: FloatArray
) -> None:
    """Replace each row y of ``solution`` by the shortest x with R x = y.

    With R' = Q [U; 0] for a triangle U, x = Q [z; 0] for U' z = y.

    Parameters
    ----------
    rows : ndarray, shape (rank, m), float64
        The rows R, of which row i begins with i zeros. Padded with zeros so that m is a multiple of 8.
        Overwritten.
    vectors : ndarray, shape (rank, m), float64
        Zeros; overwritten by the vectors of the reflections in Q.
    scratch : ndarray, shape (at least 2, at least rank), float64
        Memory to write to.
    solution : ndarray, shape (c, m), float64
        Vectors y, with zeros behind; overwritten by the vectors x.
    """
    diagonal, halves = scratch[0], scratch[1]
    for i in range(rows.shape[0]):
        for j in range(i, rows.shape[1]):
            vectors[i, j] = rows[i, j]
        diagonal[i], halves[i] = _reflection(vectors[i], i, rows.shape[1])
        _reflect(rows, i + 1, vectors[i], i, halves[i])
    for c in range(solution.shape[0]):
        z = solution[c]
        for i in range(rows.shape[0]):
            z[i] = (z[i] - dot(rows[i], z, ZERO, i)) / diagonal[i]
    for i in range(rows.shape[0] - 1, -1, -1):
        _reflect(solution, ZERO, vectors[i], i, halves[i])
