"""Adaptive regularisation of weights."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from forks.algorithm.newton import NewtonState, newton_step
from forks.arrays import FloatArray
from forks.compiled.products import dot
from forks.losses import SQUARED_HINGE, loss_curvature, loss_slope
from forks.rivals.base.learner import VectorRival, positive


class AROW(VectorRival):
    """Linear function with a Gaussian belief N(w, Sigma) about its weights, with a full covariance.

    An example with a margin below 1 adds x x' / r to Sigma^-1, and moves w to the minimum of the distance
    from the previous belief plus the squared hinge loss divided by 2 r. That is
    `forks.algorithm.newton.newton_step` on this loss, from the prior N(0, I). An event costs O(dimension^2).
    There is no intercept; add a column of ones for one.

    A label of weight h has its loss h times, which is as if r were r / h: slope and curvature of the step are
    h times as large. That is what h such labels in a row come to.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    r
        Resistance of the belief to change, > 0: the larger, the less an example changes it.

    References
    ----------
    Crammer, Kulesza and Dredze, Adaptive Regularization of Weight Vectors, NIPS 2009.

    Examples
    --------
    >>> learner = AROW(1)
    >>> learner.learn_one([3.0], -1)
    1.0
    >>> round(learner.predict_one([3.0]), 6)  # 9 / (9 + r) of the way
    -0.9
    """

    arrays: ClassVar = {
        "weights": (float, ("dimension",)),
        "covariance": (float, ("dimension", "dimension")),
    }
    no_weights = None

    def __init__(self, dimension: int, *, r: float = 1.0) -> None:
        super().__init__(dimension)
        self._r = positive("r", r)
        self.weights, self.covariance = NewtonState.prior(dimension, 1.0)

    def _score(self, event: FloatArray) -> float:
        return float(dot(self.weights, event))

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        if y * score < 1.0:
            belief = NewtonState(self.weights, self.covariance)
            slope = loss_slope(SQUARED_HINGE, score, y) / (2.0 * self._r)
            curvature = loss_curvature(SQUARED_HINGE, score, y) / (2.0 * self._r)
            newton_step(belief, event, weight * slope, weight * curvature, np.empty(self.dimension))
