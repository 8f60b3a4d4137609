"""The randomised budget Perceptron."""

from __future__ import annotations

from typing import ClassVar

from forks.arrays import FloatArray
from forks.rivals.base.budgeted import Budgeted, random_slot
from forks.rivals.base.learner import at_least


class RBP(Budgeted):
    """The kernel Perceptron that forgets a stored point at random for each that it adds beyond its budget.

    Cavallanti, Cesa-Bianchi and Gentile, Machine Learning 69, 2007, with the Gaussian kernel: on a mistake,
    f <- f + y k(x, .), and if there is no room, f loses a term first, each equally likely. A tie, f(x) = 0,
    counts as a mistake. An event costs O(budget dimension). The paper bounds the expected number of mistakes.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    budget
        Largest number B of stored points, >= 1.
    width
        Width of the Gaussian kernel, > 0.
    seed
        Seed of the evictions, >= 0.

    Examples
    --------
    >>> learner = RBP(1, budget=1)
    >>> learner.learn_one([2.0], 1), learner.learn_one([2.0], -1)
    (1.0, 2.0)
    >>> learner.predict_one([2.0])
    -1.0
    """

    numbers: ClassVar = {**Budgeted.numbers, "evictions": int}

    def __init__(self, dimension: int, *, budget: int = 50, width: float = 1.0, seed: int = 0) -> None:
        super().__init__(dimension, budget=budget, width=width)
        self._seed = at_least("seed", seed, 0)
        self.evictions = 0

    def _learn(self, event: FloatArray, y: float, score: float) -> None:
        if y * score > 0.0:
            return
        if not self._full:
            self._add(event, y)
        else:
            self._store_at(random_slot(self._seed, self.evictions, self.budget), event, y)
            self.evictions += 1
