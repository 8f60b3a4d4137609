"""Factors of inverse kernel matrices, which grow with each point in O(m^2).

With K the kernel matrix of m points, S a diagonal of scales and rho >= 0, W W' = S (S K S + rho I)^-1 S for W
= S L^-T, where L is the Cholesky factor of the inverted matrix. A new point adds a row of zeros and a column
to W. For k, the kernel of the points with x, W'k has two meanings:

- With S = I and rho = 0, W'k is x in an orthonormal basis of the span of the points: their Nystrom features.
  Other bases, such as V D^(-1/2) of K = V D V', differ by a rotation.
- With rho > 0, W'k is the part of x that regularised regression on the points explains; 1 - |W'k|^2 remains.

All functions assume kernels with k(x, x) = 1 and do not use BLAS.
"""

from __future__ import annotations

import math

import numpy as np

from forks.arrays import FloatArray
from forks.compiled.products import dot, matvec, vecmat
from forks.jit import njit

# With rho = 0, a point closer to the span than the root of this counts as part of it: dividing by less would
# turn rounding errors into features.
DEPENDENT = 1e-8


@njit(cache=True, allocates=True)
def span_coordinates(W: FloatArray, k: FloatArray) -> FloatArray:
    """Return W'k, (rank,), for ``W`` (m, rank) and ``k`` (m,).

    Examples
    --------
    >>> span_coordinates(np.array([[2.0]]), np.array([0.5]))
    array([1.])
    """
    out = np.empty(W.shape[1])
    vecmat(k, W, out)
    return out


@njit(cache=True)
def residual(z: FloatArray) -> float:
    """Return 1 - |z|^2 for z = W'k, the squared part of x outside of the span, and at least 0."""
    return max(1.0 - dot(z, z), 0.0)


@njit(cache=True)
def leverage(z: FloatArray, weight: float, rho: float) -> float:
    """Return the ridge leverage score of a new point with z = W'k and this weight, its squared scale.

    Examples
    --------
    >>> leverage(np.array([0.5]), 1.0, 0.25)
    0.75
    """
    rest = weight * residual(z)
    return rest / (rest + rho)


@njit(cache=True, allocates=True)
def append_point(W: FloatArray, z: FloatArray, scale: float, rho: float) -> FloatArray:
    """Return W with a new point.

    Parameters
    ----------
    W : ndarray, shape (m, rank), float64
        Factor of m points.
    z : ndarray, shape (rank,), float64
        W'k of the new point.
    scale
        Scale of the new point, > 0.
    rho
        Regularisation with which W was made, >= 0.

    Returns
    -------
    ndarray, shape (m + 1, rank + 1), float64
        The new factor, without the last column if the point is a combination of the others.

    Examples
    --------
    >>> W = append_point(np.empty((0, 0)), np.empty(0), 2.0, 5.0)  # 2 (2 1 2 + 5)^(-1/2)
    >>> W.round(6)
    array([[0.666667]])
    """
    m, rank = W.shape
    rest = scale * scale * residual(z) + rho
    dependent = rest <= DEPENDENT * scale * scale
    out = np.zeros((m + 1, rank if dependent else rank + 1))
    out[:m, :rank] = W
    if not dependent:
        factor = scale / math.sqrt(rest)
        out[:m, rank] = -factor * matvec(W, z)
        out[m, rank] = factor
    return out
