"""Kernels whose sums have a fixed order, so that equal inputs give equal bits.

==============  ===============================================
linear          k(x, y) = x'y
polynomial      k(x, y) = (x'y + offset)^degree
Gaussian        k(x, y) = exp(-gamma |x - y|^2)
==============  ===============================================

A Gaussian kernel on a concatenation is the product of Gaussian kernels on its blocks. `factorised_matrix`
is that product; `forks.learning.entities` keeps the factors of blocks that rarely change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from forks.arrays import FloatArray, IntArray
from forks.compiled.alignment import CACHE_LINE
from forks.compiled.exponential import exponential
from forks.compiled.products import dot
from forks.compiled.simd import broadcast, fma, load, store, subtract
from forks.jit import njit


def precision(width: float) -> float:
    """Return gamma = 1 / (2 width^2), the factor of the squared distance in the exponent.

    Examples
    --------
    >>> precision(0.5)
    2.0
    """
    return 1.0 / (2.0 * width * width)


@njit(cache=True)
def linear(x: FloatArray, y: FloatArray) -> float:
    """Return x'y for two C-contiguous (dimension,) vectors.

    Examples
    --------
    >>> linear(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return dot(x, y)


@njit(cache=True)
def polynomial(x: FloatArray, y: FloatArray, degree: int, offset: float) -> float:
    """Return (x'y + offset)^degree for two C-contiguous (dimension,) vectors, degree >= 1, offset >= 0.

    Examples
    --------
    >>> polynomial(np.array([1.0, 2.0]), np.array([3.0, 4.0]), 2, 1.0)
    144.0
    """
    base = linear(x, y) + offset
    power = 1.0
    for _ in range(degree):
        power *= base
    return power


@njit(cache=True)
def gaussian(x: FloatArray, y: FloatArray, gamma: float) -> float:
    """Return exp(-gamma |x - y|^2) for two (dimension,) vectors; gamma is that of `precision`.

    Examples
    --------
    >>> gaussian(np.array([1.0, 2.0]), np.array([1.0, 2.0]), 0.5)
    1.0
    """
    distance = 0.0
    for j in range(x.shape[0]):
        apart = x[j] - y[j]
        distance = fma(apart, apart, distance)
    return exponential(-gamma * distance)


@njit(cache=True)
def gaussian_row(x: FloatArray, columns: FloatArray, gamma: float, out: FloatArray) -> None:
    """Write the Gaussian kernel of ``x`` with each column of a matrix, with the bits of `gaussian`.

    Parameters
    ----------
    x : ndarray, shape (dimension,), float64
        A point.
    columns : ndarray, shape (dimension, n), float64
        Points, one per column.
    gamma
        Factor of the squared distance, 1 / (2 width^2); see `precision`.
    out : ndarray, shape (n,), float64
        Kernel values; overwritten.
    """
    squared_distances(x, columns, out)
    gaussian_in_place(out, gamma)


@njit(cache=True)
def squared_distances(x: FloatArray, columns: FloatArray, out: FloatArray) -> None:
    """Write the squared distances of ``x``, (dimension,), from ``columns``, (dimension, n), to ``out``.

    The loop adds one coordinate to the distances of all points before the next coordinate. The sums do not
    depend on each other, which is several times as fast as one point after the other. With two coordinates in
    each pass, in order, each sum is loaded and stored half as often.
    """
    out[:] = 0.0
    pairs = columns.shape[0] - columns.shape[0] % 2
    for j in range(0, pairs, 2):
        a, b = x[j], x[j + 1]
        for i in range(columns.shape[1]):
            first, second = a - columns[j, i], b - columns[j + 1, i]
            out[i] = fma(second, second, fma(first, first, out[i]))
    for j in range(pairs, columns.shape[0]):
        for i in range(columns.shape[1]):
            apart = x[j] - columns[j, i]
            out[i] = fma(apart, apart, out[i])


@njit(cache=True)
def squared_distance_matrix(X: FloatArray, columns: FloatArray, out: FloatArray) -> None:
    """Write `squared_distances` of each row of ``X``, with the same bits.

    With four rows in each pass, ``columns`` is loaded a quarter as often, and the sums stay in registers.

    Parameters
    ----------
    X : ndarray, shape (at least count, dimension), float64
        Points, one per row.
    columns : ndarray, shape (dimension, n), float64
        Points, one per column; rows begin at cache lines.
    out : ndarray, shape (count, n), float64
        Squared distances; rows begin at cache lines. Overwritten.
    """
    fours = out.shape[0] - out.shape[0] % 4
    for i in range(0, fours, 4):
        for m in range(0, out.shape[1], CACHE_LINE):
            a = b = c = d = broadcast(0.0)
            for j in range(columns.shape[0]):
                points = load(columns, (j, m))
                a = _add_squared(X[i, j], points, a)
                b = _add_squared(X[i + 1, j], points, b)
                c = _add_squared(X[i + 2, j], points, c)
                d = _add_squared(X[i + 3, j], points, d)
            store(out, (i, m), a)
            store(out, (i + 1, m), b)
            store(out, (i + 2, m), c)
            store(out, (i + 3, m), d)
    for i in range(fours, out.shape[0]):
        squared_distances(X[i], columns, out[i])


@njit(cache=True, inline="always")
def _add_squared(x: float, points: Any, total: Any) -> Any:
    apart = subtract(broadcast(x), points)
    return fma(apart, apart, total)


@njit(cache=True)
def gaussian_in_place(values: FloatArray, gamma: float) -> None:
    """Convert squared distances, (n,), to values of the Gaussian kernel, in place."""
    for i in range(values.shape[0]):
        values[i] = exponential(-gamma * values[i])


@njit(cache=True, allocates=True)
def linear_matrix(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the (n, m) linear kernel between the rows of ``left`` (n, d) and ``right`` (m, d).

    Examples
    --------
    >>> linear_matrix(np.eye(2), np.array([[3.0, 4.0]])).tolist()
    [[3.0], [4.0]]
    """
    rows, others = np.ascontiguousarray(left), np.ascontiguousarray(right)
    out = np.empty((left.shape[0], right.shape[0]))
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            out[i, j] = linear(rows[i], others[j])
    return out


@njit(cache=True, allocates=True)
def polynomial_matrix(left: FloatArray, right: FloatArray, degree: int, offset: float) -> FloatArray:
    """Return the (n, m) polynomial kernel between the rows of ``left`` (n, d) and ``right`` (m, d).

    Examples
    --------
    >>> polynomial_matrix(np.eye(2), np.array([[3.0, 4.0]]), 2, 1.0).tolist()
    [[16.0], [25.0]]
    """
    rows, others = np.ascontiguousarray(left), np.ascontiguousarray(right)
    out = np.empty((left.shape[0], right.shape[0]))
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            out[i, j] = polynomial(rows[i], others[j], degree, offset)
    return out


@njit(cache=True, allocates=True)
def gaussian_matrix(left: FloatArray, right: FloatArray, gamma: float) -> FloatArray:
    """Return the (n, m) Gaussian kernel between the rows of ``left`` (n, d) and ``right`` (m, d).

    Examples
    --------
    >>> gaussian_matrix(np.eye(2), np.eye(2), 0.5).round(3).tolist()
    [[1.0, 0.368], [0.368, 1.0]]
    """
    out = np.empty((left.shape[0], right.shape[0]))
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            out[i, j] = gaussian(left[i], right[j], gamma)
    return out


@njit(cache=True, allocates=True)
def gaussian_column(x: FloatArray, points: FloatArray, gamma: float) -> FloatArray:
    """Return the Gaussian kernel, (n,), of ``x``, (dimension,), with the rows of ``points`` (n, dimension).

    Examples
    --------
    >>> gaussian_column(np.zeros(2), np.eye(2), 0.5).round(3).tolist()
    [0.607, 0.607]
    """
    out = np.empty(points.shape[0])
    for i in range(points.shape[0]):
        out[i] = gaussian(x, points[i], gamma)
    return out


@njit(cache=True, allocates=True)
def factorised_matrix(left: FloatArray, right: FloatArray, edges: IntArray, gamma: float) -> FloatArray:
    """Return `gaussian_matrix` as the product of the Gaussian kernels on blocks of columns.

    The results differ by rounding: a product of exponentials rounds differently from one exponential.

    Parameters
    ----------
    left : ndarray, shape (n, d), float64
        Points, one per row.
    right : ndarray, shape (m, d), float64
        Points, one per row.
    edges : ndarray, shape (blocks + 1,), int64
        Bounds 0 = e_0 <= e_1 <= ... = d of the blocks; block b has the columns e_b to e_(b+1) - 1.
    gamma
        Factor of the squared distance, 1 / (2 width^2); see `precision`.

    Examples
    --------
    >>> factorised_matrix(np.eye(2), np.eye(2), np.array([0, 1, 2]), 0.5).round(3).tolist()
    [[1.0, 0.368], [0.368, 1.0]]
    """
    out = np.ones((left.shape[0], right.shape[0]))
    for b in range(edges.shape[0] - 1):
        block = slice(edges[b], edges[b + 1])
        for i in range(left.shape[0]):
            for j in range(right.shape[0]):
                out[i, j] *= gaussian(left[i, block], right[j, block], gamma)
    return out
