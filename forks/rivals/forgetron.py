"""The Forgetron, a kernel Perceptron that shrinks f before each eviction."""

from __future__ import annotations

import math
from typing import ClassVar

from forks.algorithm.kernels import gaussian
from forks.arrays import FloatArray
from forks.rivals.base.budgeted import Budgeted

# Largest damage by evictions, as a share of the number of mistakes so far.
SHARE = 15.0 / 32.0


class Forgetron(Budgeted):
    """Kernel Perceptron that shrinks f as little as necessary before it evicts its oldest point.

    This is the self-tuned variant. On mistake number M, f <- f + y k(x, .). If that exceeds the budget, f <-
    phi f and the oldest point r is evicted. With a >= 0 the absolute value of r's coefficient before and m =
    y_r f(x_r), the damage of the eviction is at most (phi a)^2 + 2 phi a - 2 phi^2 a m; phi is the largest
    number in (0, 1] with which all damage so far is at most 15/32 M. A tie, f(x) = 0, counts as a mistake. An
    event costs O(budget dimension). The paper bounds the mistakes against any function of a norm up to
    sqrt((budget + 1) / log(budget + 1)) / 4.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    budget
        Largest number B of stored points, >= 1.
    width
        Width of the Gaussian kernel, > 0.

    References
    ----------
    Dekel, Shalev-Shwartz and Singer, The Forgetron: A Kernel-Based Perceptron on a Budget, SIAM Journal on
    Computing 37, 2008.

    Examples
    --------
    >>> learner = Forgetron(1, budget=1)
    >>> learner.learn_one([0.0], 1), learner.learn_one([9.0], -1)
    (1.0, 1.0)
    >>> round(learner.predict_one([0.0]), 3) == 0, learner.predict_one([9.0])  # evicted, and shrunk
    (True, -0.75)
    """

    numbers: ClassVar = {**Budgeted.numbers, "mistakes": int, "damage": float}
    no_weights = (
        "the Forgetron allows an eviction the damage of one mistake, and a mistake of a small weight, which "
        "makes up for less, evicts as much"
    )

    def __init__(self, dimension: int, *, budget: int = 50, width: float = 1.0) -> None:
        super().__init__(dimension, budget=budget, width=width)
        self.mistakes = 0
        self.damage = 0.0

    def _learn(self, event: FloatArray, y: float, score: float, _weight: float, /) -> None:
        if y * score > 0.0:
            return
        self.mistakes += 1
        if self._full:
            self._replace_oldest(event, y)
        else:
            self._add(event, y)

    def _replace_oldest(self, event: FloatArray, y: float) -> None:
        """Shrink f, and replace its oldest point."""
        slot = (self.mistakes - 1) % self.budget  # mistakes fill the slots cyclically
        oldest = self.points[:, slot].copy()
        size = abs(float(self.coefficients[slot]))
        sign = math.copysign(1.0, self.coefficients[slot])
        value = self._score(oldest) + y * gaussian(event, oldest, self._gamma)
        quadratic, linear = size * size - 2.0 * size * sign * value, 2.0 * size
        share = shrinkage(quadratic, linear, self.damage - SHARE * self.mistakes)
        self.damage += (quadratic * share + linear) * share
        self.coefficients *= share
        self._store_at(slot, event, share * y)


def shrinkage(quadratic: float, linear: float, constant: float) -> float:
    """Return the largest phi in (0, 1] with quadratic phi^2 + linear phi + constant <= 0.

    Parameters
    ----------
    quadratic
        Coefficient of phi^2.
    linear
        Coefficient of phi, >= 0.
    constant
        Constant term, < 0.

    Examples
    --------
    >>> shrinkage(1.0, 0.0, -0.25), shrinkage(1.0, 0.0, -4.0), shrinkage(0.0, 1.0, -0.5)
    (0.5, 1.0, 0.5)
    """
    if quadratic + linear + constant <= 0.0:
        return 1.0
    # The parabola is negative at 0 and positive at 1, so it has one root between.
    return -2.0 * constant / (linear + math.sqrt(linear * linear - 4.0 * quadratic * constant))
