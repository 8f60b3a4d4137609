"""Bounded online gradient descent."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from forks.arrays import FloatArray
from forks.losses import LOSSES, LossName
from forks.rivals.base.budgeted import Budgeted, random_slot
from forks.rivals.base.learner import at_least, known_loss, positive
from forks.rivals.base.weights import descent_slope


class BOGD(Budgeted):
    """Kernel gradient descent that evicts a stored point at random and increases the other coefficients.

    Points are evicted uniformly, as in the comparisons of the FORKS papers (BOGD++ evicts small coefficients
    more often). On an event whose loss has a slope, f <- (1 - step decay) f - step l'(f(x)) k(x, .). If the
    budget is full, f first loses a random term, and the others are multiplied by B / (B - 1), so that f is
    unchanged in expectation; afterwards all coefficients are scaled so that the largest is at most
    ``largest`` step (the paper also allows to clip each). On other events f <- (1 - step decay) f. An event
    costs O(budget dimension).

    A label of weight h has the slopes of its steps together in place of l'(f(x))
    (`forks.rivals.base.weights.descent_slope`), with k(x, x) = 1. It evicts and decays once.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    budget
        Largest number B of stored points, >= 2.
    step
        Step size eta, > 0.
    decay
        Regularisation lambda, >= 0, with step * decay < 1.
    largest
        Bound gamma of the coefficients, in units of ``step``, > 0.
    width
        Width of the Gaussian kernel, > 0.
    loss
        Loss: ``hinge``, ``squared_hinge`` or another of `forks.losses`.
    seed
        Seed of the evictions, >= 0.

    References
    ----------
    Zhao et al., Fast Bounded Online Gradient Descent Algorithms for Scalable Kernel-Based Online Learning,
    ICML 2012 (arXiv 1206.4633).

    Examples
    --------
    >>> learner = BOGD(1, budget=2, step=0.5, decay=0.0)
    >>> [learner.learn_one([2.0], 1) for _ in range(3)]
    [1.0, 0.5, 0.0]
    >>> learner.predict_one([2.0])
    1.0
    """

    numbers: ClassVar = {**Budgeted.numbers, "evictions": int}
    no_weights = None

    def __init__(
        self,
        dimension: int,
        *,
        budget: int = 50,
        step: float = 0.2,
        decay: float = 1e-6,
        largest: float = 10.0,
        width: float = 1.0,
        loss: LossName = "hinge",
        seed: int = 0,
    ) -> None:
        super().__init__(dimension, budget=at_least("budget", budget, 2), width=width)
        self.loss = known_loss(loss)
        self._step = positive("step", step)
        if not 0.0 <= step * decay < 1.0:
            raise ValueError(f"decay must be >= 0 and below 1 / step, not {decay}")
        self._kept = 1.0 - step * decay
        self._bound = positive("largest", largest) * step
        self._seed = at_least("seed", seed, 0)
        self.evictions = 0

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        self.coefficients *= self._kept
        slope = descent_slope(LOSSES[self.loss], score, y, weight, self._step)
        if slope == 0.0:
            return
        if not self._full:
            self._add(event, -self._step * slope)
            return
        self.coefficients *= self.budget / (self.budget - 1)
        self._store_at(random_slot(self._seed, self.evictions, self.budget), event, -self._step * slope)
        self.evictions += 1
        self.coefficients *= min(1.0, self._bound / np.abs(self.coefficients).max())
