"""The kernel Perceptron."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from forks.algorithm.kernels import precision
from forks.algorithm.kogd import Expansion, expansion_value
from forks.arrays import FloatArray
from forks.rivals.base.learner import VectorRival, positive
from forks.rivals.base.weights import mistaken_weight


class Perceptron(VectorRival):
    """Kernel Perceptron without a budget: each mistaken example is added, f <- f + y k(x, .).

    It predicts with its last function, not by votes of all functions so far. The kernel is Gaussian. A tie,
    f(x) = 0, counts as a mistake. An event costs O(m dimension) after m mistakes; on a stream that some
    function of norm U separates with margin 1, there are at most U^2 mistakes (Novikoff).

    A label of weight h makes steps of weight 1, and a last one of what is left, until x is no mistake
    (`forks.rivals.base.weights.mistaken_weight`): f <- f + tau y k(x, .) with
    tau = min(h, floor(-y f(x)) + 1).

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    width
        Width of the Gaussian kernel, > 0.

    References
    ----------
    Freund and Schapire, Large Margin Classification Using the Perceptron Algorithm, Machine Learning 37,
    1999, section 2.

    Examples
    --------
    >>> learner = Perceptron(1)
    >>> learner.learn_one([2.0], 1)
    1.0
    >>> learner.predict_one([2.0])
    1.0
    """

    arrays: ClassVar = {"points": (float, (None, "dimension")), "coefficients": (float, (None,))}
    no_weights = None

    def __init__(self, dimension: int, *, width: float = 1.0) -> None:
        super().__init__(dimension)
        self._gamma = precision(positive("width", width))
        self.points = np.empty((0, dimension))
        self.coefficients = np.empty(0)

    def _score(self, event: FloatArray) -> float:
        return float(expansion_value(event, Expansion(self.points, self.coefficients), self._gamma))

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        if y * score <= 0.0:
            self.points = np.vstack([self.points, event])
            self.coefficients = np.append(self.coefficients, mistaken_weight(y * score, weight) * y)
