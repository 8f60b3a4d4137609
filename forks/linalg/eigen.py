"""Eigenvalues and eigenvectors of a symmetric matrix: Householder's tridiagonal form, then implicit QL.

All loops are compiled and have a fixed order of sums, products, quotients and square roots, without fused
operations. So the bits are the same on every processor and with every library. Loops over the columns of a
matrix take sixteen of them at a time, each computed as if it were alone.

References
----------
Golub and Van Loan, Matrix Computations, 4th edition, 2013, sections 8.3.1 (tridiagonal form) and 8.3.5
(implicit shifts); Wilkinson and Reinsch, Handbook for Automatic Computation II, 1971, contribution II/4 (QL).
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

import math

import numpy as np

from forks.arrays import FloatArray
from forks.compiled.simd import add, broadcast, load, multiply, store, subtract
from forks.jit import ZERO, njit
from forks.linalg.vectors import EIGHT, EPSILON, NEGLIGIBLE, SIXTEEN, dot, power_of_two_near

MOST_SWEEPS = 50
"""Most sweeps for one eigenvalue; two are usual. Wilkinson's shift converges for every matrix."""


def symmetric_eigen(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of a symmetric matrix in ascending order, (n,), and its eigenvectors as columns.

    Only the lower triangle is read. O(n^3). With V the eigenvectors and L the diagonal matrix of the
    eigenvalues, ``matrix`` differs from V L V' by at most 4 n ulp of its norm, and V'V from I by at most 4 n
    ulp of 1.

    Raises
    ------
    ValueError
        ``matrix`` has an entry that is not finite.
    ArithmeticError
        QL did not converge, which is known of no matrix.

    Examples
    --------
    >>> symmetric_eigen(np.diag([3.0, 1.0]))[0].tolist()
    [1.0, 3.0]
    """
    n, scale = len(matrix), power_of_two_near(matrix)
    A = _with_room(matrix / scale)
    Q, scratch = np.zeros_like(A), np.zeros((7, A.shape[1]))
    diagonal, beside, halves = scratch[4:, :n]
    _make_tridiagonal(A, diagonal, beside, halves, scratch)
    _multiply_reflections(A, halves, Q)
    rows = _with_room(Q[:, :n].T)  # eigenvectors, once they are rotated
    if not _diagonalize(diagonal, beside, rows, scratch):
        raise ArithmeticError(f"no eigenvalue after {MOST_SWEEPS} sweeps of QL")
    order = np.argsort(diagonal, kind="stable")
    return diagonal[order] * scale, rows[order, :n].T


def _with_room(matrix: FloatArray) -> FloatArray:
    """Return a copy, (n, m), with columns of zeros up to a multiple of sixteen, and eight more.

    Then rows are an odd number of cache lines apart. Where it is a high power of two, the same columns of
    different rows compete for the same few places of the cache.
    """
    n = len(matrix)
    out = np.zeros((n, n + -n % SIXTEEN + EIGHT))
    out[:, :n] = matrix
    return out


@njit(cache=True)
def _make_tridiagonal(
    A: FloatArray, diagonal: FloatArray, beside: FloatArray, halves: FloatArray, scratch: FloatArray
) -> None:
    """Make a symmetric matrix tridiagonal by reflections, from the last row to the first.

    The reflection of row i changes the rows and columns before it: with v the reflection's vector and h half
    its squared length, it is I - v v' / h, and A becomes A - v w' - w v' for w = A v / h - (v'A v / 2 h^2) v.
    The pass over A that makes this change also multiplies the result by the next vector.

    Parameters
    ----------
    A : ndarray, shape (n, m), float64
        Matrix, of which the lower triangle is read, and m - n columns of zeros. Overwritten by the vectors v,
        one a row.
    diagonal : ndarray, shape (n,), float64
        Diagonal of the result; overwritten.
    beside : ndarray, shape (n,), float64
        Entries beside it, that of row i + 1 at i; zeros, overwritten.
    halves : ndarray, shape (n,), float64
        Half the squared lengths h; 0 where there is no reflection. Zeros, overwritten.
    scratch : ndarray, shape (at least 4, m), float64
        Four rows of zeros; overwritten.
    """
    v, w, u, product = scratch[0], scratch[1], scratch[2], scratch[3]  # v and w: a change to be made
    for i in range(A.shape[0]):
        for j in range(i):
            A[j, i] = A[i, j]
    for i in range(A.shape[0] - 1, -1, -1):
        row = A[i]
        v_i, w_i = v[i], w[i]
        for j in range(i + 1):
            row[j] -= v_i * w[j] + w_i * v[j]
        diagonal[i] = row[i]
        if i == 0:
            return
        v[i] = w[i] = row[i] = u[i] = 0.0
        for j in range(i):
            u[j] = row[j]
        squared = dot(u, u, ZERO, i - 1)
        half = 0.0
        if squared <= NEGLIGIBLE:
            beside[i - 1] = u[i - 1]
            for j in range(i):
                u[j] = 0.0
        else:
            first = u[i - 1]
            length = math.sqrt(squared + first * first)
            half = squared + first * first + abs(first) * length
            beside[i - 1] = -length if first > 0.0 else length
            u[i - 1] = first - beside[i - 1]
        halves[i] = half
        _change_and_multiply(A, i, v, w, u, product)
        along = 0.0
        if half > 0.0:
            for j in range(i):
                product[j] /= half
            along = dot(product, u, ZERO, i) / (2.0 * half)
        for j in range(i):
            v[j] = row[j] = u[j]
            w[j] = product[j] - along * u[j]


@njit(cache=True)
def _change_and_multiply(
    A: FloatArray, n: int, v: FloatArray, w: FloatArray, u: FloatArray, product: FloatArray
) -> None:
    """Subtract v w' + w v' from the first n rows and columns of ``A``, and write u'A for the result."""
    for j in range(0, n, SIXTEEN):
        k = j + EIGHT
        v_j, w_j, v_k, w_k = load(v, j), load(w, j), load(v, k), load(w, k)
        first = second = broadcast(0.0)
        for i in range(n):
            v_i, w_i, u_i = broadcast(v[i]), broadcast(w[i]), broadcast(u[i])
            row = subtract(load(A, (i, j)), add(multiply(v_i, w_j), multiply(w_i, v_j)))
            store(A, (i, j), row)
            first = add(first, multiply(u_i, row))
            row = subtract(load(A, (i, k)), add(multiply(v_i, w_k), multiply(w_i, v_k)))
            store(A, (i, k), row)
            second = add(second, multiply(u_i, row))
        store(product, j, first)
        store(product, k, second)


@njit(cache=True)
def _multiply_reflections(vectors: FloatArray, halves: FloatArray, Q: FloatArray) -> None:
    """Write the product of the reflections, that of the last row first, to ``Q``, (n, m) of zeros."""
    for i in range(vectors.shape[0]):
        Q[i, i] = 1.0
        if halves[i] == 0.0:
            continue
        v, inverse = vectors[i], broadcast(-1.0 / halves[i])
        for j in range(0, i, SIXTEEN):
            k = j + EIGHT
            first = second = broadcast(0.0)
            for r in range(i):
                v_r = broadcast(v[r])
                first = add(first, multiply(v_r, load(Q, (r, j))))
                second = add(second, multiply(v_r, load(Q, (r, k))))
            first, second = multiply(first, inverse), multiply(second, inverse)
            for r in range(i):
                v_r = broadcast(v[r])
                store(Q, (r, j), add(load(Q, (r, j)), multiply(v_r, first)))
                store(Q, (r, k), add(load(Q, (r, k)), multiply(v_r, second)))


@njit(cache=True)
def _diagonalize(d: FloatArray, e: FloatArray, rows: FloatArray, scratch: FloatArray) -> bool:
    """Make a symmetric tridiagonal matrix diagonal by rotations, which ``rows`` undergo too.

    Parameters
    ----------
    d : ndarray, shape (n,), float64
        Diagonal; overwritten by the eigenvalues.
    e : ndarray, shape (n,), float64
        Entries beside it, the last one 0; overwritten.
    rows : ndarray, shape (n, m), float64
        Square matrix with columns of zeros behind; one row for each row of the tridiagonal one.
    scratch : ndarray, shape (at least 2, at least n), float64
        Two rows are overwritten by the cosines and sines of a sweep.

    Returns
    -------
    bool
        Whether it is diagonal; not if an eigenvalue took too many sweeps.
    """
    cosines, sines = scratch[0], scratch[1]
    norm = 0.0
    for i in range(d.shape[0]):
        norm = max(norm, abs(d[i]) + abs(e[i]))
    least = EPSILON * norm
    first, sweeps, end = ZERO, 0, d.shape[0] - 1
    while first < end:
        last = first
        while last < end and abs(e[last]) > least:
            last += 1
        if last == first:
            first, sweeps = first + 1, 0
            continue
        if sweeps == MOST_SWEEPS:
            return False
        sweeps += 1
        stop = _sweep(d, e, first, last, cosines, sines)
        _rotate(rows, stop, last, cosines, sines)
    return True


@njit(cache=True)
def _sweep(
    d: FloatArray, e: FloatArray, first: int, last: int, cosines: FloatArray, sines: FloatArray
) -> int:
    """Take a step of QL on the rows from ``first`` to ``last``; return the row up to which it rotated them.

    This is ``first``, or a later one where a row turned out to be zero beside its diagonal.
    """
    apart = (d[first + 1] - d[first]) / (2.0 * e[first])
    length = math.sqrt(apart * apart + 1.0)
    shift = e[first] / (apart + length if apart >= 0.0 else apart - length)
    g = d[last] - d[first] + shift
    sine, cosine, p = 1.0, 1.0, 0.0
    for i in range(last - 1, first - 1, -1):
        f, b = sine * e[i], cosine * e[i]
        squared = f * f + g * g
        if squared <= NEGLIGIBLE:
            e[i + 1] = 0.0
            d[i + 1] -= p
            e[last] = 0.0
            return i + 1
        length = math.sqrt(squared)
        e[i + 1] = length
        sine, cosine = f / length, g / length
        g = d[i + 1] - p
        r = (d[i] - g) * sine + 2.0 * cosine * b
        p = sine * r
        d[i + 1] = g + p
        g = cosine * r - b
        cosines[i], sines[i] = cosine, sine
    d[first] -= p
    e[first] = g
    e[last] = 0.0
    return first


@njit(cache=True)
def _rotate(rows: FloatArray, first: int, last: int, cosines: FloatArray, sines: FloatArray) -> None:
    """Rotate rows i + 1 and i of a matrix, for i from ``last`` - 1 down to ``first``."""
    for j in range(0, rows.shape[0], SIXTEEN):
        k = j + EIGHT
        below_j, below_k = load(rows, (last, j)), load(rows, (last, k))
        for i in range(last - 1, first - 1, -1):
            cosine, sine = broadcast(cosines[i]), broadcast(sines[i])
            row_j, row_k = load(rows, (i, j)), load(rows, (i, k))
            store(rows, (i + 1, j), add(multiply(sine, row_j), multiply(cosine, below_j)))
            store(rows, (i + 1, k), add(multiply(sine, row_k), multiply(cosine, below_k)))
            below_j = subtract(multiply(cosine, row_j), multiply(sine, below_j))
            below_k = subtract(multiply(cosine, row_k), multiply(sine, below_k))
        store(rows, (first, j), below_j)
        store(rows, (first, k), below_k)
