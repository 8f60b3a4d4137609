"""Factors of inverse kernel matrices, which grow with each point in O(m^2).

With K the kernel matrix of m points, S a diagonal of scales and rho >= 0, W W' = S (S K S + rho I)^-1 S for
W = S L^-T, where L is Cholesky's factor of what is inverted. A further point adds a row of zeros and a
column to W. So W'k, for k the kernel of the points with x, is

- with S = I and rho = 0, x in an orthonormal basis of what the points span: their Nystrom features. Any
  other, such as V D^(-1/2) of K = V D V', differs by a rotation;
- with rho > 0, what regularised regression on the points reaches of x: 1 - |W'k|^2 is beyond it.

All of it is for kernels with k(x, x) = 1, and without BLAS.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from forks.arrays import FloatArray
from forks.compiled.products import dot, matvec, vecmat

# With rho = 0, what lies closer to the points' span than the root of this counts as part of it: dividing by
# less would make features of rounding.
DEPENDENT = 1e-8


@njit(cache=True)
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
    """Return 1 - |z|^2 for z = W'k, what of x is not reached; not less than 0 by rounding."""
    return max(1.0 - dot(z, z), 0.0)


@njit(cache=True)
def leverage(z: FloatArray, weight: float, rho: float) -> float:
    """Return the ridge leverage score of a further point, z = W'k, of this weight (its squared scale).

    Examples
    --------
    >>> leverage(np.array([0.5]), 1.0, 0.25)
    0.75
    """
    rest = weight * residual(z)
    return rest / (rest + rho)


@njit(cache=True)
def append_point(W: FloatArray, z: FloatArray, scale: float, rho: float) -> FloatArray:
    """Return W with a further point.

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
        Without the last column where the point is a combination of the others.

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
