"""The kernel Perceptron."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from forks.algorithm.kernels import precision
from forks.algorithm.kogd import Expansion, expansion_value
from forks.arrays import FloatArray
from forks.rivals.base.learner import VectorRival, positive


class Perceptron(VectorRival):
    """Adds each example on which it is mistaken: f <- f + y k(x, .), which never forgets and has no budget.

    Freund and Schapire, Machine Learning 37, 1999, section 2, with the Gaussian kernel, in its last (not the
    voted) form. A tie, f(x) = 0, counts as a mistake. An event costs O(m dimension) with m mistakes before;
    on a stream that some function of norm U separates with margin 1, mistakes are at most U^2 (Novikoff).

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    width
        Width of the Gaussian kernel, > 0.

    Examples
    --------
    >>> learner = Perceptron(1)
    >>> learner.learn_one([2.0], 1)
    1.0
    >>> learner.predict_one([2.0])
    1.0
    """

    arrays: ClassVar = {"points": (float, (None, "dimension")), "coefficients": (float, (None,))}

    def __init__(self, dimension: int, *, width: float = 1.0) -> None:
        super().__init__(dimension)
        self._gamma = precision(positive("width", width))
        self.points = np.empty((0, dimension))
        self.coefficients = np.empty(0)

    def _score(self, event: FloatArray) -> float:
        return float(expansion_value(event, Expansion(self.points, self.coefficients), self._gamma))

    def _learn(self, event: FloatArray, y: float, score: float) -> None:
        if y * score <= 0.0:
            self.points = np.vstack([self.points, event])
            self.coefficients = np.append(self.coefficients, y)
