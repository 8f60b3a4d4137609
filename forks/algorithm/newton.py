"""Online Newton Step with clipping (FORKS, Eq. 10), in place, in O(features^2)."""

# ruff: noqa: PLR0917 -- compiled code is called by position

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from forks.arrays import FloatArray
from forks.compiled.products import dot, rank_one_downdate, vecmat
from forks.compiled.simd import fma
from forks.jit import njit


class NewtonState(NamedTuple):
    """State of Online Newton Step.

    Attributes
    ----------
    weights : ndarray, shape (n,), float64
        Weights w.
    inverse_hessian : ndarray, shape (n, n), float64
        Inverse Hessian A^-1, symmetric. In the compiled loops its shape is (n, m), with m - n columns of
        zeros.
    """

    weights: FloatArray
    inverse_hessian: FloatArray

    @classmethod
    def prior(cls, features: int, alpha: float | FloatArray) -> Self:
        """Return the initial state: w = 0, A = alpha I, or the diagonal matrix of an alpha, (n,), each."""
        return cls(np.zeros(features), np.diag(np.broadcast_to(1.0 / np.asarray(alpha), features)))


@njit(cache=True)
def clipped(score: float, clip: float) -> float:
    """Return s - h(s) for h(s) = sign(s) max(|s| - C, 0), the score after `project`."""
    return min(max(score, -clip), clip)


@njit(cache=True)
def project(newton: NewtonState, z: FloatArray, clip: float, workspace: FloatArray) -> float:
    """Project w, in the norm of A, to |w'z| <= C, and return w'z: the second half of Eq. 10.

    The paper does this when z arrives, before the prediction. Here it is done when the label arrives; until
    then the prediction is the clipped score, which is the same number.

    Parameters
    ----------
    newton
        State whose weights are changed.
    z : ndarray, shape (n,), float64
        Features of the event.
    clip
        Bound C of the scores, > 0.
    workspace : ndarray, shape (m,), float64
        Scratch memory; overwritten.
    """
    score = dot(newton.weights, z)
    kept = clipped(score, clip)
    if kept != score:
        vecmat(z, newton.inverse_hessian, workspace)
        project_and_step(newton.weights, z, workspace, score - kept, 0.0, 0.0, workspace)
    return kept


@njit(cache=True)
def newton_step(
    newton: NewtonState, z: FloatArray, slope: float, curvature: float, workspace: FloatArray
) -> None:
    """Add ``curvature`` z z' to A, then set w <- w - A^-1 g with g = ``slope`` z: the first half of Eq. 10.

    The step uses the A that includes this event, as do Hazan et al. (Machine Learning 69, 2007) and the
    paper's sum for A_t; its Algorithm 1 can also be read with the A of the event before.

    A^-1 follows from the formula of Sherman and Morrison: with u = A^-1 z, q = 1 + curvature z'u and
    r = sqrt(curvature / q) u, the new A^-1 is A^-1 - r r', and the new A^-1 z is u / q.

    Parameters
    ----------
    newton
        State to change.
    z : ndarray, shape (n,), float64
        Features of the event.
    slope
        Derivative of the loss with respect to the score w'z.
    curvature
        Weight of z z' in the Hessian, >= 0.
    workspace : ndarray, shape (m,), float64
        Scratch memory; overwritten.
    """
    vecmat(z, newton.inverse_hessian, workspace)
    project_and_step(newton.weights, z, workspace, 0.0, slope, curvature, workspace)
    rank_one_downdate(newton.inverse_hessian, workspace)


@njit(cache=True, inline="always")
def project_and_step(
    weights: FloatArray,
    z: FloatArray,
    u: FloatArray,
    excess: float,
    slope: float,
    curvature: float,
    root: FloatArray,
) -> None:
    """Apply `project` and then `newton_step` to w, given u = A^-1 z.

    Parameters
    ----------
    weights : ndarray, shape (n,), float64
        Weights w; changed.
    z : ndarray, shape (n,), float64
        Features of the event.
    u : ndarray, shape (m,), m >= n, float64
        A^-1 z.
    excess
        Difference between w'z and the score that `project` leaves.
    slope
        Derivative of the loss with respect to the projected score.
    curvature
        Weight of z z' in the Hessian, >= 0.
    root : ndarray, shape (m,), float64
        Overwritten by the r of which r r' has to be subtracted from A^-1, see `newton_step`; may be ``u``
        itself.
    """
    along = max(dot(z, u), 0.0)  # A^-1 is positive definite, but rounding can make the sum negative
    q = 1.0 + curvature * along
    step = slope / q
    if along > 0.0:
        step += excess / along
    for i in range(weights.shape[0]):
        weights[i] = fma(-step, u[i], weights[i])
    scale = math.sqrt(curvature / q)
    for i in range(root.shape[0]):
        root[i] = scale * u[i]
