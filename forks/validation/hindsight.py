"""The best fixed linear predictor in hindsight, the reference of regret."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog, minimize

from forks.arrays import FloatArray
from forks.jit import njit
from forks.losses import LOSSES, LossName, loss_slope, loss_value

# Largest entry of the gradient of the mean loss at a minimum, in units of standardised columns.
TOLERANCE = 1e-7


class LinearPredictor(NamedTuple):
    """Linear function x -> weights . x + intercept; ``weights`` has shape (d,)."""

    weights: FloatArray
    intercept: float

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the scores of the rows of ``X``, (n, d)."""
        out: FloatArray = X @ self.weights + self.intercept
        return out


@njit(cache=True, allocates=True)
def losses(loss: int, scores: FloatArray, y: FloatArray) -> FloatArray:
    """Return the loss, by its number in `forks.LOSSES`, of each score at its label, (n,).

    Examples
    --------
    >>> losses(LOSSES["hinge"], np.array([0.5, 2.0]), np.array([1.0, -1.0]))
    array([0.5, 3. ])
    """
    out = np.empty(len(scores))
    for i in range(len(scores)):
        out[i] = loss_value(loss, scores[i], y[i])
    return out


@njit(cache=True, allocates=True)
def _slopes(loss: int, scores: FloatArray, y: FloatArray) -> FloatArray:
    out = np.empty(len(scores))
    for i in range(len(scores)):
        out[i] = loss_slope(loss, scores[i], y[i])
    return out


def best_linear(X: FloatArray, y: FloatArray, loss: LossName) -> LinearPredictor:
    """Return the linear predictor with the least summed loss over all rows of ``X``, (n, d), and ``y``, (n,).

    It is fitted to all labels, has an intercept, and is not regularised. The minimum is exact for the hinge,
    from a linear program, and for the squared loss, from least squares. Logistic and squared hinge loss are
    minimised by L-BFGS until no entry of the mean loss's gradient exceeds 1e-7 in standardised columns. If a
    hyperplane separates the labels, the logistic loss has only the infimum 0, and the search ends close to
    it. With a column of extreme outliers, slopes are small everywhere and the search may end above the
    minimum; the regret against its result is then less than the true one.

    Raises
    ------
    RuntimeError
        The search did not reach a minimum.

    References
    ----------
    Hazan, Introduction to Online Convex Optimization, 2016, section 1.1 (regret).
    Byrd, Lu, Nocedal and Zhu, A limited memory algorithm for bound constrained optimization, 1995.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> best = best_linear(X, np.array([-1.0, -1.0, 1.0, 1.0]), "squared")
    >>> best.weights.round(3), round(best.intercept, 3)
    (array([0.8]), -1.2)
    """
    mean, scale = X.mean(axis=0), X.std(axis=0)
    # A constant column adds nothing to the intercept.
    varies = scale > 1e-12 * np.abs(mean)
    standardised = np.where(varies, (X - mean) / np.where(varies, scale, 1.0), 0.0)
    design = np.column_stack([standardised, np.ones(len(X))])
    if loss == "hinge":
        solution = _least_hinge(design, y)
    elif loss == "squared":
        solution = np.linalg.lstsq(design, y)[0]
    else:
        solution = _least_smooth(design, y, LOSSES[loss])
    weights = np.where(varies, solution[:-1] / np.where(varies, scale, 1.0), 0.0)
    return LinearPredictor(weights, float(solution[-1] - weights @ mean))


def _least_hinge(design: FloatArray, y: FloatArray) -> FloatArray:
    """Return argmin over w of sum_i max(0, 1 - y_i w . design_i), (d + 1,).

    It solves the dual, max sum a subject to sum_i a_i y_i design_i = 0 and 0 <= a <= 1, whose basis is as
    small as w; w is the multiplier of the equalities.
    """
    constraints = (design * y[:, None]).T
    found = linprog(-np.ones(len(y)), A_eq=constraints, b_eq=np.zeros(len(constraints)), bounds=(0, 1))
    if not found.success:
        raise RuntimeError(f"the best linear predictor under the hinge loss was not found: {found.message}")
    return -np.asarray(found.eqlin.marginals, dtype=np.float64)


def _least_smooth(design: FloatArray, y: FloatArray, loss: int) -> FloatArray:
    """Return argmin over w of the mean of a differentiable loss of design_i . w, (d + 1,)."""

    def value_and_gradient(w: FloatArray) -> tuple[float, FloatArray]:
        scores = design @ w
        return float(losses(loss, scores, y).mean()), _slopes(loss, scores, y) @ design / len(y)

    found = minimize(
        value_and_gradient,
        np.zeros(design.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"gtol": TOLERANCE, "ftol": 0.0, "maxiter": 20_000, "maxfun": 50_000, "maxcor": 30},
    )
    solution = np.asarray(found.x, dtype=np.float64)
    # Rounding may end the search a little above the tolerance, so the gradient decides, not the optimiser's
    # status.
    steepest = float(np.abs(value_and_gradient(solution)[1]).max())
    if steepest > 100 * TOLERANCE:
        raise RuntimeError(
            f"the best linear predictor was not found: the steepest slope is {steepest:.1e}, {found.message}"
        )
    return solution
