"""Online gradient descent on the Nystrom approximation of the kernel."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from forks.algorithm.kernels import gaussian_matrix
from forks.arrays import FloatArray
from forks.compiled.products import dot, matvec, vecmat
from forks.linalg.eigen import symmetric_eigen
from forks.losses import LOSSES, LossName, loss_slope
from forks.rivals.base.budgeted import Budgeted, kernel_features
from forks.rivals.base.learner import at_least, known_loss, positive
from forks.rivals.base.weights import descent_slope


class NOGD(Budgeted):
    """Kernel gradient descent until the budget is full, then on Nystrom features of the stored points.

    With V the eigenvectors of the k largest eigenvalues D of the stored points' kernel matrix, the features
    are z(x) = D^(-1/2) V' k(x), and w <- w - step l'(f(x)) z. f is always a combination of the stored points,
    with the coefficients V D^(-1/2) w, which are kept instead of w: they are projected to the span of V when
    the features are made, and a step subtracts step l'(f(x)) V D^(-1) V' k(x) from them. An event costs
    O(budget (dimension + k)), a score O(budget dimension). Events without a slope change nothing. Eigenvalues
    below the largest times budget epsilon are noise and ignored.

    There is no regularisation. The features are made as soon as the budget is full. A label of weight h has
    the slopes of its steps together in place of l'(f(x)) (`forks.rivals.base.weights.descent_slope`).

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    budget
        Number B of stored points from which the features are made, >= 1.
    rank
        Number k of features, in [1, budget]; by default a tenth of the budget.
    step
        Step size eta, > 0.
    width
        Width of the Gaussian kernel, > 0.
    loss
        Loss: ``hinge``, ``squared_hinge`` or another of `forks.losses`.

    References
    ----------
    Lu et al., Large Scale Online Kernel Learning, JMLR 17, 2016.

    Examples
    --------
    >>> learner = NOGD(1, budget=1, rank=1, step=0.5)
    >>> [learner.learn_one([2.0], 1) for _ in range(3)]
    [1.0, 0.5, 0.0]
    >>> learner.stored
    1
    """

    arrays: ClassVar = {**Budgeted.arrays, "basis": (float, ("budget", "rank"))}
    no_weights = None

    def __init__(
        self,
        dimension: int,
        *,
        budget: int = 50,
        rank: int | None = None,
        step: float = 0.2,
        width: float = 1.0,
        loss: LossName = "hinge",
    ) -> None:
        super().__init__(dimension, budget=budget, width=width)
        self.loss = known_loss(loss)
        self._step = positive("step", step)
        self.rank = max(1, budget // 10) if rank is None else at_least("rank", rank, 1)
        if self.rank > budget:
            raise ValueError(f"rank must be at most the budget, {budget}, not {rank}")
        self.basis = np.zeros((budget, self.rank))
        """V D^(-1/2) once the budget is full."""

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        loss = LOSSES[self.loss]
        if loss_slope(loss, score, y) == 0.0:
            return
        if self._full:
            features = kernel_features(event, self.points, self.basis, self._gamma)
            slope = descent_slope(loss, score, y, weight, self._step * dot(features, features))
            self.coefficients -= self._step * slope * matvec(self.basis, features)
        else:
            self._add(event, -self._step * descent_slope(loss, score, y, weight, self._step))
            if self.stored == self.budget:
                self._make_features()

    def _make_features(self) -> None:
        points = np.ascontiguousarray(self.points.T)
        values, vectors = symmetric_eigen(gaussian_matrix(points, points, self._gamma))
        values, vectors = values[-self.rank :], np.ascontiguousarray(vectors[:, -self.rank :])
        sound = values > values[-1] * self.budget * np.finfo(np.float64).eps
        roots = np.sqrt(values, where=sound, out=np.full(self.rank, np.inf))
        self.basis = vectors / roots
        along = np.empty(self.rank)
        vecmat(self.coefficients, vectors, along)
        self.coefficients = matvec(vectors * sound, along)
