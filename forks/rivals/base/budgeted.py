"""Base of the rivals with a budget of stored points."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from forks.algorithm.kernels import gaussian_row, precision
from forks.arrays import FloatArray
from forks.compiled.products import dot, vecmat
from forks.jit import njit
from forks.randomness import Purpose, draws
from forks.rivals.base.learner import VectorRival, at_least, positive


class Budgeted(VectorRival):
    """A function f(x) = sum_i coefficients[i] k(points[:, i], x) of at most ``budget`` points.

    Points are columns, so that kernel values are computed several times as fast
    (`forks.algorithm.kernels.squared_distances`). Memory for all of them is allocated at once; a free slot
    has the coefficient 0. A score costs O(budget dimension).

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    budget
        Largest number of stored points, >= 1.
    width
        Width of the Gaussian kernel, > 0.
    """

    arrays: ClassVar = {"points": (float, ("dimension", "budget")), "coefficients": (float, ("budget",))}
    numbers: ClassVar = {"stored": int}

    def __init__(self, dimension: int, *, budget: int, width: float) -> None:
        super().__init__(dimension)
        self.budget = at_least("budget", budget, 1)
        self._gamma = precision(positive("width", width))
        self.points = np.zeros((dimension, budget))
        self.coefficients = np.zeros(budget)
        self.stored = 0

    @property
    def _full(self) -> bool:
        return self.stored == self.budget

    def _score(self, event: FloatArray) -> float:
        return float(weighted_kernel(event, self.points, self.coefficients, self._gamma))

    def _kernels(self, event: FloatArray) -> FloatArray:
        """Return the kernel of an event with the point of each slot, (budget,)."""
        row: FloatArray = kernel_row(event, self.points, self._gamma)
        return row

    def _add(self, event: FloatArray, coefficient: float) -> None:
        """Store a point in the next free slot."""
        self._store_at(self.stored, event, coefficient)
        self.stored += 1

    def _store_at(self, slot: int, event: FloatArray, coefficient: float) -> None:
        """Store a point in a slot, replacing its content."""
        self.points[:, slot] = event
        self.coefficients[slot] = coefficient


def random_slot(seed: int, eviction: int, slots: int) -> int:
    """Return a random slot for the eviction of this number, with each slot equally likely.

    Examples
    --------
    >>> random_slot(0, 7, 10) == random_slot(0, 7, 10)
    True
    """
    return int(draws(seed, Purpose.EVICTION, eviction, 1)[0] % np.uint64(slots))


@njit(cache=True, allocates=True)
def kernel_row(x: FloatArray, points: FloatArray, gamma: float) -> FloatArray:
    """Return the Gaussian kernel of ``x`` with each column of ``points`` (dimension, n), (n,)."""
    row = np.empty(points.shape[1])
    gaussian_row(x, points, gamma, row)
    return row


@njit(cache=True, allocates=True)
def weighted_kernel(x: FloatArray, points: FloatArray, coefficients: FloatArray, gamma: float) -> float:
    """Return sum_i coefficients[i] k(points[:, i], x), summed in the order of the columns.

    Examples
    --------
    >>> weighted_kernel(np.zeros(1), np.zeros((1, 2)), np.array([1.0, 2.0]), 0.5)
    3.0
    """
    return dot(kernel_row(x, points, gamma), coefficients)


@njit(cache=True, allocates=True)
def kernel_features(x: FloatArray, points: FloatArray, basis: FloatArray, gamma: float) -> FloatArray:
    """Return ``basis``' k, (m,), for ``basis`` (n, m) and k the kernel of ``x`` with the columns (n,)."""
    features = np.empty(basis.shape[1])
    vecmat(kernel_row(x, points, gamma), basis, features)
    return features
