"""Carry-over: Newton's state, transferred from one feature map to the next instead of reset."""

from __future__ import annotations

import numpy as np

from forks.algorithm.newton import NewtonState
from forks.arrays import FloatArray
from forks.linalg.eigen import symmetric_eigen
from forks.linalg.least_squares import plain_least_squares
from forks.linalg.products import product

# Directions of the new map in which the stored points hardly vary get nothing from the old map.
RELATIVE_CUTOFF = 1e-3


def transfer(old: FloatArray, new: FloatArray) -> FloatArray:
    """Return T = argmin |new T - old|_F, which makes old weights w the new weights T w.

    Parameters
    ----------
    old : ndarray, shape (n, k_old), float64
        Stored points under the old map.
    new : ndarray, shape (n, k_new), float64
        The same points under the new map.

    Returns
    -------
    ndarray, shape (k_new, k_old), float64
        The transfer matrix T.
    """
    return plain_least_squares(new, old, RELATIVE_CUTOFF)


def first_weights(newton: NewtonState, values: FloatArray, new: FloatArray) -> NewtonState:
    """Return the state for the first map, in which a function's values become weights of the kernel part.

    The inverse Hessian is kept: gradient descent has learned nothing about the certainty of these weights.

    Parameters
    ----------
    newton
        State on the features of the linear part and, behind them, k features of the kernel part.
    values : ndarray, shape (n,), float64
        Values of stage 1's function at the stored points.
    new : ndarray, shape (n, k), float64
        The same points under the map.
    """
    weights = newton.weights.copy()
    weights[len(weights) - new.shape[1] :] = transfer(values[:, None], new)[:, 0]
    return newton._replace(weights=weights)


def carry_over(newton: NewtonState, T: FloatArray, alpha: float) -> NewtonState:
    """Return the state for the new map; the linear part, whose features come first, is kept.

    On the kernel part w <- T w and A^-1 <- T A^-1 T' + (1/alpha) [I - T T']_+, where [.]_+ is the positive
    part of a symmetric matrix: a direction that the old map did not span gets its prior variance.

    Parameters
    ----------
    newton
        State on the features of the linear part and, behind them, k features of the kernel part.
    T : ndarray, shape (k, k), float64
        Transfer matrix, see `transfer`.
    alpha
        The prior of the inverse Hessian is I / alpha; > 0.
    """
    linear = len(newton.weights) - len(T)
    weights, inverse = newton.weights.copy(), newton.inverse_hessian.copy()
    weights[linear:] = product(T, weights[linear:, None])[:, 0]
    inverse[linear:] = product(T, inverse[linear:])
    inverse[:, linear:] = product(inverse[:, linear:], T.T)
    inverse[linear:, linear:] += _positive_part(np.eye(len(T)) - product(T, T.T)) / alpha
    return NewtonState(weights, (inverse + inverse.T) / 2)


def forget(newton: NewtonState, share: float, alpha: float | FloatArray) -> NewtonState:
    """Return the state with ``share`` of its Hessian, but no direction less certain than the prior.

    Otherwise the inverse Hessian, and with it every step, would shrink like one over the number of learned
    events, and a learner of a long stream would no longer follow its changes. Directions are those in which
    the weights are scaled such that the prior is the same for all.

    Parameters
    ----------
    newton
        State on any features.
    share
        Share of the Hessian that is kept, in (0, 1].
    alpha : float or ndarray, shape (n,), float64
        The prior of the inverse Hessian is I / alpha, or the diagonal matrix of 1 / alpha; > 0.
    """
    if share == 1.0:
        return newton
    precisions = np.broadcast_to(alpha, len(newton.weights))
    roots = np.sqrt(precisions / precisions[-1])  # 1.0, which changes no bit, where the prior is the same
    scale = roots[:, None] * roots
    values, vectors = symmetric_eigen(newton.inverse_hessian * scale)
    variances = np.maximum(values, np.minimum(values / share, 1.0 / precisions[-1]))
    inverse = product(vectors * variances, vectors.T) / scale
    return newton._replace(inverse_hessian=(inverse + inverse.T) / 2)


def _positive_part(matrix: FloatArray) -> FloatArray:
    values, vectors = symmetric_eigen(matrix)
    first = int(np.searchsorted(values, 0.0))
    positive = vectors[:, first:]
    return product(positive * values[first:], positive.T)
