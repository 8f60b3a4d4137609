"""Soft confidence-weighted learning."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from forks.algorithm.newton import NewtonState, newton_step
from forks.arrays import FloatArray
from forks.compiled.normal import normal
from forks.compiled.products import dot, vecmat
from forks.rivals.base.learner import VectorRival, positive


class SCW(VectorRival):
    """Linear function with a Gaussian belief N(w, Sigma) about its weights, with a full covariance.

    This is SCW-I: the new belief minimises its Kullback-Leibler divergence from the previous one plus C times
    its loss max(0, phi sqrt(x'Sigma x) - y w'x), which is zero if the label is correct with the probability
    ``confidence``. With m = y w'x and v = x'Sigma x of the previous belief,

        alpha = min(C, max(0, (sqrt(m^2 phi^4 / 4 + v phi^2 zeta) - m (1 + phi^2 / 2)) / (v zeta)))
        sqrt(u) = (sqrt(alpha^2 v^2 phi^2 + 4 v) - alpha v phi) / 2

    for zeta = 1 + phi^2, w moves by alpha y Sigma x, and Sigma^-1 grows by alpha phi / sqrt(u) x x'. The
    first belief is N(0, I). An event costs O(dimension^2). There is no intercept; add a column of ones for
    one.

    A label of weight h has its loss h times, so that h C takes the place of C. Where the step ends because
    there is no loss left, a larger weight adds nothing.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    confidence
        Probability eta of the paper, in (0.5, 1); phi is the normal distribution's quantile there.
    C
        Weight of the loss, > 0.

    References
    ----------
    Wang, Zhao and Hoi, Exact Soft Confidence-Weighted Learning, ICML 2012.

    Examples
    --------
    >>> learner = SCW(1)
    >>> learner.learn_one([3.0], -1)
    1.0
    >>> learner.predict_one([3.0]) < 0
    True
    """

    arrays: ClassVar = {
        "weights": (float, ("dimension",)),
        "covariance": (float, ("dimension", "dimension")),
    }
    no_weights = None

    def __init__(self, dimension: int, *, confidence: float = 0.9, C: float = 1.0) -> None:
        super().__init__(dimension)
        if not 0.5 < confidence < 1.0:
            raise ValueError(f"confidence must be between 0.5 and 1, not {confidence}")
        self._phi = quantile(confidence)
        self._largest = positive("C", C)
        self.weights, self.covariance = NewtonState.prior(dimension, 1.0)

    def _score(self, event: FloatArray) -> float:
        return float(dot(self.weights, event))

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        workspace = np.empty(self.dimension)
        vecmat(event, self.covariance, workspace)
        v = dot(event, workspace)
        deviation = math.sqrt(v)
        if deviation > 0.0 and self._phi * deviation > y * score:  # squares of tiny numbers are 0
            alpha = self._alpha(y * score / deviation, deviation, weight * self._largest)
            # (sqrt(alpha^2 v^2 phi^2 + 4 v) - alpha v phi) / 2, without cancellation, and without v^2
            a = alpha * deviation * self._phi
            root = 2.0 * deviation / (math.sqrt(a * a + 4.0) + a)
            growth = alpha * self._phi / root
            belief = NewtonState(self.weights, self.covariance)
            newton_step(belief, event, -y * alpha * (1.0 + growth * v), growth, workspace)

    def _alpha(self, margin: float, deviation: float, largest: float) -> float:
        """Return alpha, for ``margin`` = m / sqrt(v), ``deviation`` = sqrt(v) and ``largest`` = C."""
        squared = self._phi * self._phi
        zeta = 1.0 + squared
        half = margin * squared / 2.0
        above = math.sqrt(half * half + squared * zeta) - (margin + half)
        return min(largest, max(0.0, above / (deviation * zeta)))


def quantile(probability: float) -> float:
    """Return the least number at which the normal distribution function is a probability, from 0.5 to 1.

    Examples
    --------
    >>> round(quantile(0.975), 6)
    1.959964
    """
    low, high = 0.0, 10.0
    while low < (middle := (low + high) / 2.0) < high:
        if normal(middle)[1] < probability:
            low = middle
        else:
            high = middle
    return high
