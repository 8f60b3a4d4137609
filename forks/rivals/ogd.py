"""Online gradient descent of a linear function."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from forks.arrays import FloatArray
from forks.compiled.products import dot
from forks.losses import LOSSES, LossName
from forks.rivals.base.learner import VectorRival, known_loss, positive
from forks.rivals.base.weights import descent_slope


class OGD(VectorRival):
    """Gradient descent of a linear function with decreasing steps: w <- w - (step / sqrt(t)) dl/ds x.

    Without the paper's projection to a bounded set, on which its regret of O(sqrt(T)) depends. t counts all
    events, including those without a loss. An event costs O(dimension). There is no intercept; add a column
    of ones for one.

    A label of weight h has the slopes of its steps together in place of dl/ds
    (`forks.rivals.base.weights.descent_slope`), and is one event.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    step
        Step size at the first event, > 0.
    loss
        Loss: ``hinge``, ``logistic`` or another of `forks.losses`.

    References
    ----------
    Zinkevich, Online Convex Programming and Generalized Infinitesimal Gradient Ascent, ICML 2003.

    Examples
    --------
    >>> learner = OGD(1, step=0.5)
    >>> learner.learn_one([2.0], 1), learner.learn_one([1.0], 1)
    (1.0, 0.0)
    >>> learner.predict_one([2.0])
    2.0
    """

    arrays: ClassVar = {"weights": (float, ("dimension",))}
    numbers: ClassVar = {"count": int}
    no_weights = None

    def __init__(self, dimension: int, *, step: float = 0.2, loss: LossName = "hinge") -> None:
        super().__init__(dimension)
        self.loss = known_loss(loss)
        self._step = positive("step", step)
        self.weights = np.zeros(dimension)
        self.count = 0

    def _score(self, event: FloatArray) -> float:
        return float(dot(self.weights, event))

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        self.count += 1
        step = self._step / math.sqrt(self.count)
        slope = descent_slope(LOSSES[self.loss], score, y, weight, step * dot(event, event))
        self.weights -= step * slope * event
