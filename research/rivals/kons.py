"""The kernel online Newton step, exact."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from forks.algorithm.kernels import precision
from forks.algorithm.newton import clipped
from forks.arrays import FloatArray
from forks.compiled.products import dot, matvec
from forks.losses import LOSSES, LossName, loss_slope
from forks.rivals.base.budgeted import kernel_row, weighted_kernel
from forks.rivals.base.learner import VectorRival, known_loss, not_negative, positive
from research.rivals.whitening import append_point, residual, span_coordinates


class KONS(VectorRival):
    """Exact Online Newton Step in the space of the Gaussian kernel.

    The steps are those of `forks.algorithm.newton` with the features phi(x) = k(x, .), A = alpha I + eta sum
    g g' and g = dl/ds phi. With the points that entered A as the columns of Phi, the roots of their weights
    eta (dl/ds)^2 as the diagonal D, and K = Phi'Phi,

        A^-1 phi = (phi - Phi D (D K D + alpha I)^-1 D Phi'phi) / alpha,

    and each step moves w along it. After n learned events, of which m had a loss with a slope and entered A,
    an event costs O(n dimension + m^2) time and memory. By the paper, the regret is O(d log T) with the
    effective dimension d, for losses that are curved along their gradient.

    The defaults of alpha, eta and loss are those that FORKS, appendix H, has for itself. Scores are projected
    to [-C, C] when the label is learned (`forks.algorithm.newton.project`).

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    width
        Width of the Gaussian kernel, > 0.
    alpha
        A starts at alpha I; > 0.
    eta
        Weight of g g', >= 0.
    clip
        Bound C of the scores, which are kept in [-C, C]; > 0, may be infinite.
    loss
        Loss: ``hinge``, ``logistic`` or another of `forks.losses`.

    References
    ----------
    Calandriello, Lazaric and Valko, Second-Order Kernel Online Convex Optimization with Adaptive Sketching,
    ICML 2017.

    Examples
    --------
    >>> learner = KONS(1, alpha=1.0)
    >>> learner.learn_one([0.0], 1), round(learner.predict_one([0.0]), 6)  # A = 1 + 0.5
    (1.0, 0.666667)
    """

    arrays: ClassVar = {
        "points": (float, ("dimension", None)),
        "coefficients": (float, (None,)),
        "entered": (int, (None,)),
        "hessian": (float, (None, None)),
    }

    def __init__(
        self,
        dimension: int,
        *,
        width: float = 1.0,
        alpha: float = 0.01,
        eta: float = 0.5,
        clip: float = math.inf,
        loss: LossName = "hinge",
    ) -> None:
        super().__init__(dimension)
        self.loss = known_loss(loss)
        self._precision = precision(positive("width", width))
        self._alpha = positive("alpha", alpha)
        self._eta = not_negative("eta", eta)
        self._clip = positive("clip", clip)
        self.points = np.empty((dimension, 0))
        self.coefficients = np.empty(0)
        self.entered = np.empty(0, dtype=np.int64)
        """Indices of the points that entered A."""
        self.hessian = np.empty((0, 0))
        """W with W W' = D (D K D + alpha I)^-1 D."""

    def _score(self, event: FloatArray) -> float:
        score = weighted_kernel(event, self.points, self.coefficients, self._precision)
        return float(clipped(score, self._clip))

    def _learn(self, event: FloatArray, y: float, score: float, _weight: float, /) -> None:
        k = kernel_row(event, self.points, self._precision)
        slope = loss_slope(LOSSES[self.loss], score, y)
        excess = dot(self.coefficients, k) - score
        if slope == 0.0 and excess == 0.0:
            return
        self._project_and_step(event, k[self.entered], slope, excess)

    def _project_and_step(self, event: FloatArray, k: FloatArray, slope: float, excess: float) -> None:
        """Project the score, then step; both move w along A^-1 phi.

        Parameters
        ----------
        event : ndarray, shape (dimension,), float64
            Vector of the event.
        k : ndarray, shape (m,), float64
            Kernel of the event with the points that entered A.
        slope
            Slope of the loss.
        excess
            Difference between the score and its projection to [-C, C].
        """
        z = span_coordinates(self.hessian, k)
        distance = residual(z) / self._alpha  # phi'A^-1 phi
        along = matvec(self.hessian, z)
        weight = self._eta * slope * slope
        entered, enters = self.entered, weight > 0.0 and self._enters(k, weight)
        if enters:
            self.hessian = append_point(self.hessian, z, math.sqrt(weight), self._alpha)
            self.entered = np.append(entered, len(self.coefficients))
        step = excess / distance + slope / (1.0 + weight * distance if enters else 1.0)
        self.coefficients[entered] += step / self._alpha * along
        self.coefficients = np.append(self.coefficients, -step / self._alpha)
        self.points = np.column_stack([self.points, event])

    def _enters(self, k: FloatArray, weight: float) -> bool:  # noqa: ARG002  # for those that choose
        """Return whether an event of this weight enters A; ``k`` is its kernel with the points in A, (m,)."""
        return True
