"""The budgeted passive-aggressive learner, in its simple form."""

from __future__ import annotations

import numpy as np

from forks.arrays import FloatArray
from forks.rivals.base.budgeted import Budgeted
from forks.rivals.base.learner import positive


class BPAS(Budgeted):
    """BPA-S: the smallest change of f that an example requires, with the eviction that changes f the least.

    Of all functions g without one stored point r and with another coefficient of x, the learner chooses the
    one with the smallest |g - f|^2 / 2 + C max(0, 1 - y g(x)). For a given r and the Gaussian kernel, that is
    f - a_r k(x_r, .) + (a_r k(x_r, x) + tau y) k(x, .), where tau = min(C, 1 - y f(x)). Its value at x is
    f(x) + tau y for every r, and its squared distance from f is a_r^2 (1 - k(x_r, x)^2) + tau^2; the point r
    with the smallest distance is evicted, the one in the first slot among equals. Until the budget is full,
    it is the passive-aggressive learner PA-I. An event costs O(budget dimension).

    A label of weight h has its loss h times, so that h C takes the place of C. With PA-I, that is what h such
    labels in a row come to.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    budget
        Largest number B of stored points, >= 1.
    aggressiveness
        Largest coefficient C of an example, > 0.
    width
        Width of the Gaussian kernel, > 0.

    References
    ----------
    Wang and Vucetic, Online Passive-Aggressive Algorithms on a Budget, AISTATS 2010.
    Crammer et al., Online Passive-Aggressive Algorithms, JMLR 7, 2006.

    Examples
    --------
    >>> learner = BPAS(1, budget=1)
    >>> learner.learn_one([2.0], 1), learner.learn_one([2.0], -1)
    (1.0, 2.0)
    >>> learner.predict_one([2.0])  # not -1: the step is at most C
    0.0
    """

    no_weights = None

    def __init__(
        self, dimension: int, *, budget: int = 50, aggressiveness: float = 1.0, width: float = 1.0
    ) -> None:
        super().__init__(dimension, budget=budget, width=width)
        self._aggressiveness = positive("aggressiveness", aggressiveness)

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        loss = 1.0 - y * score
        if loss <= 0.0:
            return
        step = y * min(weight * self._aggressiveness, loss)
        if not self._full:
            self._add(event, step)
            return
        row = self._kernels(event)
        slot = int(np.argmin(np.square(self.coefficients) * (1.0 - np.square(row))))
        self._store_at(slot, event, self.coefficients[slot] * row[slot] + step)
