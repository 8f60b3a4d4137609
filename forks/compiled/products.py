"""Products of small vectors and matrices without BLAS, with a fixed order of summation.

Each product is added to its sum with one rounding, see `forks.compiled.simd.fma`.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import Any

import numpy as np

from forks.arrays import FloatArray
from forks.compiled.alignment import CACHE_LINE
from forks.compiled.simd import HAS_WIDE_REGISTERS, broadcast, fma, horizontal_sum, load, store
from forks.jit import njit


@njit(cache=True)
def dot(u: FloatArray, v: FloatArray) -> float:
    """Return u'v of two C-contiguous vectors.

    There are eight sums, each of every eighth product; `forks.compiled.simd.horizontal_sum` adds them. The
    last products, fewer than eight, are then added one by one.

    Examples
    --------
    >>> import numpy as np
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    whole = u.shape[0] - u.shape[0] % CACHE_LINE
    sums = broadcast(0.0)
    for i in range(0, whole, CACHE_LINE):
        sums = fma(load(u, i), load(v, i), sums)
    total: float = horizontal_sum(sums)
    for i in range(whole, u.shape[0]):
        total = fma(u[i], v[i], total)
    return total


@njit(cache=True)
def vecmat(weights: FloatArray, rows: FloatArray, out: FloatArray) -> None:
    """Write ``weights``' ``rows``, each number summed from the first row to the last.

    The loop adds one row to all sums before the next row, so that the sums do not depend on each other. With
    eight rows in each pass, in order, each sum is loaded and stored an eighth as often.

    Parameters
    ----------
    weights : ndarray, shape (n,), float64
        Vector to multiply from the left.
    rows : ndarray, shape (n, at least m), float64
        Matrix.
    out : ndarray, shape (m,), float64
        Product; overwritten.
    """
    out[:] = 0.0
    eights = weights.shape[0] - weights.shape[0] % 8
    for n in range(0, eights, 8):
        a, b, c, d = weights[n], weights[n + 1], weights[n + 2], weights[n + 3]
        e, f, g, h = weights[n + 4], weights[n + 5], weights[n + 6], weights[n + 7]
        for i in range(out.shape[0]):
            total = fma(a, rows[n, i], out[i])
            total = fma(b, rows[n + 1, i], total)
            total = fma(c, rows[n + 2, i], total)
            total = fma(d, rows[n + 3, i], total)
            total = fma(e, rows[n + 4, i], total)
            total = fma(f, rows[n + 5, i], total)
            total = fma(g, rows[n + 6, i], total)
            out[i] = fma(h, rows[n + 7, i], total)
    for n in range(eights, weights.shape[0]):
        a = weights[n]
        for i in range(out.shape[0]):
            out[i] = fma(a, rows[n, i], out[i])


@njit(cache=True)
def matmul(weights: FloatArray, rows: FloatArray, out: FloatArray) -> None:
    """Write `vecmat` of each row of ``weights``, with the same bits.

    With four or eight rows of ``weights`` in each pass, ``rows`` is loaded less often, and the sums stay in
    registers.

    Parameters
    ----------
    weights : ndarray, shape (count, at least n), float64
        Left matrix.
    rows : ndarray, shape (n, m), float64
        Right matrix; rows begin at cache lines.
    out : ndarray, shape (count, m), float64
        Product; rows begin at cache lines. Overwritten.
    """
    eights = out.shape[0] - out.shape[0] % 8 if HAS_WIDE_REGISTERS else 0
    for i in range(0, eights, 8):
        for j in range(0, out.shape[1], CACHE_LINE):
            a = b = c = d = e = f = g = h = broadcast(0.0)
            for n in range(rows.shape[0]):
                row = load(rows, (n, j))
                a, b, c, d = _add_to_four(weights, i, n, row, a, b, c, d)
                e, f, g, h = _add_to_four(weights, i + 4, n, row, e, f, g, h)
            _store_four(out, i, j, a, b, c, d)
            _store_four(out, i + 4, j, e, f, g, h)
    fours = out.shape[0] - out.shape[0] % 4
    for i in range(eights, fours, 4):
        for j in range(0, out.shape[1], CACHE_LINE):
            a = b = c = d = broadcast(0.0)
            for n in range(rows.shape[0]):
                a, b, c, d = _add_to_four(weights, i, n, load(rows, (n, j)), a, b, c, d)
            _store_four(out, i, j, a, b, c, d)
    for i in range(fours, out.shape[0]):
        vecmat(weights[i, : rows.shape[0]], rows, out[i])


@njit(cache=True, inline="always")
def _add_to_four(weights: FloatArray, i: int, n: int, row: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Return four sums with ``row`` added, times number n of four rows of ``weights`` from i on."""
    a = fma(broadcast(weights[i, n]), row, a)
    b = fma(broadcast(weights[i + 1, n]), row, b)
    c = fma(broadcast(weights[i + 2, n]), row, c)
    d = fma(broadcast(weights[i + 3, n]), row, d)
    return a, b, c, d


@njit(cache=True, inline="always")
def _store_four(out: FloatArray, i: int, j: int, a: Any, b: Any, c: Any, d: Any) -> None:
    """Write eight numbers each to four rows from i on, from column j on."""
    store(out, (i, j), a)
    store(out, (i + 1, j), b)
    store(out, (i + 2, j), c)
    store(out, (i + 3, j), d)


@njit(cache=True)
def rank_one_downdate(matrix: FloatArray, root: FloatArray) -> None:
    """Subtract ``root`` ``root``' from a symmetric ``matrix``, which stays symmetric to the bit.

    Parameters
    ----------
    matrix : ndarray, shape (n, m), m >= n, float64
        Matrix to change.
    root : ndarray, shape (m,), float64
        Vector whose outer product is subtracted.
    """
    for i in range(matrix.shape[0]):
        factor = -root[i]
        for j in range(matrix.shape[1]):
            matrix[i, j] = fma(factor, root[j], matrix[i, j])


@njit(cache=True)
def downdate_and_vecmat(matrix: FloatArray, root: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Apply `rank_one_downdate` and then `vecmat` with the bits of both, but load the matrix only once.

    The cost is that of writing the matrix. With two cache lines of each row in a pass there are two
    independent sums; a single one would wait for its own result.

    Parameters
    ----------
    matrix : ndarray, shape (n, m), m >= n, float64
        Matrix to change; rows begin at cache lines.
    root : ndarray, shape (m,), float64
        Vector whose outer product is subtracted; begins at a cache line.
    weights : ndarray, shape (at least n,), float64
        Vector to multiply from the left.
    out : ndarray, shape (m,), float64
        Product with the changed matrix; begins at a cache line. Overwritten.
    """
    pairs = matrix.shape[1] - matrix.shape[1] % (2 * CACHE_LINE)
    for j in range(0, pairs, 2 * CACHE_LINE):
        first, second = load(root, j), load(root, j + CACHE_LINE)
        a = b = broadcast(0.0)
        for i in range(matrix.shape[0]):
            factor, weight = broadcast(-root[i]), broadcast(weights[i])
            a = _downdate_eight(matrix, i, j, factor, first, weight, a)
            b = _downdate_eight(matrix, i, j + CACHE_LINE, factor, second, weight, b)
        store(out, j, a)
        store(out, j + CACHE_LINE, b)
    for j in range(pairs, matrix.shape[1], CACHE_LINE):
        first = load(root, j)
        a = broadcast(0.0)
        for i in range(matrix.shape[0]):
            a = _downdate_eight(matrix, i, j, broadcast(-root[i]), first, broadcast(weights[i]), a)
        store(out, j, a)


@njit(cache=True, inline="always")
def _downdate_eight(
    matrix: FloatArray, i: int, j: int, factor: Any, root: Any, weight: Any, total: Any
) -> Any:
    """Add ``factor`` ``root`` to eight numbers of a row; return ``total`` + ``weight`` times the result."""
    row = fma(factor, root, load(matrix, (i, j)))
    store(matrix, (i, j), row)
    return fma(weight, row, total)


@njit(cache=True, allocates=True)
def matvec(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return ``rows`` ``weights``, (n,), for ``rows`` (n, m), with the bits of `dot` for each row.

    Examples
    --------
    >>> import numpy as np
    >>> matvec(np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([1.0, 1.0]))
    array([3., 3.])
    """
    out = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        out[i] = dot(rows[i], weights)
    return out
