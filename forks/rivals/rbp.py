"""The randomised budget Perceptron."""

from __future__ import annotations

from typing import ClassVar

from forks.arrays import FloatArray
from forks.rivals.base.budgeted import Budgeted, random_slot
from forks.rivals.base.learner import at_least
from forks.rivals.base.weights import mistaken_weight


class RBP(Budgeted):
    """Kernel Perceptron that evicts a stored point at random for each point beyond its budget.

    On a mistake, f <- f + y k(x, .); if the budget is full, f first loses a term, each with the same
    probability. The kernel is Gaussian. A tie, f(x) = 0, counts as a mistake. An event costs O(budget
    dimension). The paper bounds the expected number of mistakes.

    A label of weight h makes steps of weight 1, and a last one of what is left, until x is no mistake
    (`forks.rivals.base.weights.mistaken_weight`): the new term is tau y k(x, .) with tau =
    min(h, floor(-y f(x)) + 1). It evicts once.

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

    References
    ----------
    Cavallanti, Cesa-Bianchi and Gentile, Tracking the Best Hyperplane with a Simple Budget Perceptron,
    Machine Learning 69, 2007.

    Examples
    --------
    >>> learner = RBP(1, budget=1)
    >>> learner.learn_one([2.0], 1), learner.learn_one([2.0], -1)
    (1.0, 2.0)
    >>> learner.predict_one([2.0])
    -1.0
    """

    numbers: ClassVar = {**Budgeted.numbers, "evictions": int}
    no_weights = None

    def __init__(self, dimension: int, *, budget: int = 50, width: float = 1.0, seed: int = 0) -> None:
        super().__init__(dimension, budget=budget, width=width)
        self._seed = at_least("seed", seed, 0)
        self.evictions = 0

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        if y * score > 0.0:
            return
        coefficient = mistaken_weight(y * score, weight) * y
        if not self._full:
            self._add(event, coefficient)
        else:
            self._store_at(random_slot(self._seed, self.evictions, self.budget), event, coefficient)
            self.evictions += 1
