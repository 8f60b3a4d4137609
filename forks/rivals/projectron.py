"""Projectron and Projectron++, on a budget."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from forks.arrays import FloatArray
from forks.compiled.logarithm import logarithm
from forks.compiled.products import dot
from forks.jit import njit
from forks.rivals.base.budgeted import Budgeted
from forks.rivals.base.learner import positive
from forks.rivals.base.weights import mistaken_weight

# Share of k(x, x) = 1 below which the squared distance of k(x, .) from the span of the stored points is
# rounding.
NEGLIGIBLE = 1e-10


class Projectron(Budgeted):
    """Kernel Perceptron that projects onto the span of its stored points when the budget is full.

    On a mistake, f <- f + y k(x, .) while the budget is not full, and then f <- f + y P k(x, .), where P k(x,
    .) is the projection of k(x, .) onto the span of the stored points, with the coefficients d = K^-1 k for K
    the kernel matrix of the stored points and k their kernel with x. (Without a budget, the paper projects if
    that moves f by at most a threshold. Here it projects before the budget is full only if x adds nothing to
    the span: the squared rest is below 1e-10.) A tie, f(x) = 0, counts as a mistake. The Cholesky factor of K
    is kept, which is numerically more stable than the paper's inverse if points are close together. An event
    costs O(budget dimension), a mistake O(budget^2) more.

    A label of weight h makes steps of weight 1, and a last one of what is left, until x is no mistake
    (`forks.rivals.base.weights.mistaken_weight`): y becomes tau y with tau = min(h,
    floor(-y f(x) / a) + 1), where a, by which a step of weight 1 moves f(x), is |P k|^2, and 1 where x is
    stored.

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
    Orabona, Keshet and Caputo, The Projectron: a Bounded Kernel-Based Perceptron, ICML 2008.

    Examples
    --------
    >>> learner = Projectron(1, budget=1)
    >>> learner.learn_one([0.0], 1), learner.learn_one([1.0], -1)  # the second is projected onto the first
    (1.0, 1.6065306597126334)
    >>> round(learner.predict_one([0.0]), 6) == round(1 - math.exp(-0.5), 6)
    True
    """

    arrays: ClassVar = {**Budgeted.arrays, "factor": (float, ("budget", "budget"))}
    no_weights = None

    def __init__(self, dimension: int, *, budget: int = 50, width: float = 1.0) -> None:
        super().__init__(dimension, budget=budget, width=width)
        self.factor = np.zeros((budget, budget))

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        if y * score <= 0.0:
            self._learn_mistake(event, y, score, weight)

    def _learn_mistake(self, event: FloatArray, y: float, score: float, weight: float) -> None:
        half = self._whitened(event)
        inside = float(dot(half, half))
        outside = 1.0 - inside
        if self._full or outside < NEGLIGIBLE:
            self._project(half, mistaken_weight(y * score, weight, inside) * y)
        else:
            self.factor[self.stored, : self.stored] = half[: self.stored]
            self.factor[self.stored, self.stored] = math.sqrt(outside)
            self._add(event, mistaken_weight(y * score, weight) * y)

    def _whitened(self, event: FloatArray) -> FloatArray:
        """Return L^-1 k, (budget,), zero behind the stored points; its norm is that of P k(x, .)."""
        half = self._kernels(event)
        solve_lower(self.factor, self.stored, half)
        half[self.stored :] = 0.0
        return half

    def _project(self, half: FloatArray, coefficient: float) -> None:
        """Add ``coefficient`` P k(x, .) to f, for ``half`` = L^-1 k."""
        solve_upper(self.factor, self.stored, half)
        self.coefficients += coefficient * half


class ProjectronPlus(Projectron):
    """Projectron++: a Projectron that also learns from correct predictions with a margin below 1.

    On a mistake it is a `Projectron`. On a margin error, 0 < y f(x) < 1, with the loss l = 1 - y f(x), f <- f
    + tau y P k(x, .) with tau = min(l / |P k|^2, 1), if tau (2 l - tau |P k|^2 - 2 U |k - P k|) >= 0. With
    this condition, f does not move away from any function of a norm up to U that has the margin there. By
    default U is sqrt((B + 1) / log(B + 1)) / 4, the bound of the Forgetron. An event without a loss costs
    O(budget dimension), one with a loss O(budget^2) more.

    With a label of weight h, tau is min(l / |P k|^2, h) on a margin error.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    budget
        Largest number B of stored points, >= 1.
    norm
        Norm U of the functions to compete with, > 0.
    width
        Width of the Gaussian kernel, > 0.

    References
    ----------
    Orabona, Keshet and Caputo, The Projectron: a Bounded Kernel-Based Perceptron, ICML 2008.

    Examples
    --------
    >>> learner = ProjectronPlus(1, budget=1)
    >>> learner.learn_one([0.0], 1), round(learner.learn_one([0.1], 1), 3)
    (1.0, 0.005)
    """

    def __init__(
        self, dimension: int, *, budget: int = 50, norm: float | None = None, width: float = 1.0
    ) -> None:
        super().__init__(dimension, budget=budget, width=width)
        norm = math.sqrt((budget + 1) / logarithm(budget + 1.0)) / 4.0 if norm is None else norm
        self._norm = positive("norm", norm)

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        if y * score <= 0.0:
            self._learn_mistake(event, y, score, weight)
        elif y * score < 1.0:
            self._learn_margin(event, y, 1.0 - y * score, weight)

    def _learn_margin(self, event: FloatArray, y: float, loss: float, weight: float) -> None:
        half = self._whitened(event)
        inside = float(dot(half, half))
        outside = math.sqrt(max(0.0, 1.0 - inside))
        step = loss / inside if loss < weight * inside else weight
        if step * (2.0 * loss - step * inside - 2.0 * self._norm * outside) >= 0.0:
            self._project(half, step * y)


@njit(cache=True)
def solve_lower(factor: FloatArray, n: int, b: FloatArray) -> None:
    """Replace the first ``n`` entries of ``b`` by L^-1 b, for L the lower triangle of n rows and columns."""
    for i in range(n):
        total = b[i]
        for j in range(i):
            total -= factor[i, j] * b[j]
        b[i] = total / factor[i, i]


@njit(cache=True)
def solve_upper(factor: FloatArray, n: int, b: FloatArray) -> None:
    """Replace the first ``n`` entries of ``b`` by L'^-1 b."""
    for i in range(n - 1, -1, -1):
        b[i] /= factor[i, i]
        for j in range(i):
            b[j] -= factor[i, j] * b[i]
