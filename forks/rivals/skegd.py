"""SkeGD, sketched gradient descent, on which FORKS builds."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from forks.algorithm.sketched_kernel import SketchedKernel
from forks.arrays import FloatArray
from forks.compiled.products import dot
from forks.losses import LOSSES
from forks.rivals.base.budgeted import Budgeted, kernel_features
from forks.rivals.base.weights import descent_slope
from forks.settings import ForksSettings
from forks.state import State, StateReader

PREFIX = "kernel_"
"""Prefix of the sketched kernel's entries in the state."""

SMALLEST_SQUARE = 0.01
"""Lower bound of |phi(x)|^2 in Eq. 8."""

SETTINGS = ("sketch_size", "landmarks", "rank", "cycle", "blocks", "width", "step", "decay", "loss", "seed")
"""Settings of FORKS that SkeGD has, beside the budget."""


class SkeGD(Budgeted):
    """FORKS with gradient descent instead of Newton's step, and a full decomposition instead of TISVD.

    Stage 1 is KOGD until the budget is full. Then the kernel matrix of the stored points is sketched, and a
    feature map phi of rank k is made from the truncated singular value decomposition of the sketch. Once in
    ``cycle`` events, one of them enters the sketch by low-rank modifications, and the decomposition and phi
    are computed anew. When phi changes, w becomes f(x) phi(x) / |phi(x)|^2, which keeps only the value at
    this event (Eq. 8). Every event then makes the step w <- (1 - step decay) w - step l'(f(x)) phi(x) (Eq.
    9).

    The variants of the supplement's Table 1 are values of ``cycle``: floor(theta (T - B)) for theta from
    0.001 to 0.1. The paper does not say how the first map starts: here with Eq. 8, from the last value of
    stage 1. Two things differ from the paper. In Eq. 8, |phi(x)|^2 is at least 0.01: it approximates k(x, x)
    = 1, but is near 0 if x is far from all landmarks, and the weights of such an event spoil a cycle (on
    spambase with width 50, mistakes were 41 +- 10% as printed, and 36 +- 1% with the bound). And a point that
    enters evicts the oldest, so that the budget holds; the paper's sketch grows by one point each cycle.

    A label of weight h has the slopes of its steps together in place of l'(f(x))
    (`forks.rivals.base.weights.descent_slope`). It decays, and changes the map, as one event.

    An event costs O(landmarks (dimension + k)), in stage 1 O(budget dimension), a change of the map
    O(sketch_size^3).

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    budget
        Number B of stored points, more than the landmarks.
    **settings
        Settings named in `SETTINGS`, with the defaults of `forks.ForksSettings.paper`.

    References
    ----------
    Zhang and Liao, Incremental Randomized Sketching for Online Kernel Learning, ICML 2019, and its
    supplement.

    Examples
    --------
    >>> learner = SkeGD(1, budget=10, cycle=20, decay=0.0)
    >>> learner.learn_one([2.0], 1), learner.predict_one([2.0])
    (1.0, 0.2)
    """

    arrays: ClassVar = {**Budgeted.arrays, "weights": (float, ("rank",))}
    numbers: ClassVar = {**Budgeted.numbers, "since_change": int}
    no_weights = None

    def __init__(self, dimension: int, *, budget: int = 50, **settings: Any) -> None:
        self._settings = ForksSettings.paper(dimension, budget=budget, bounded=True, refresh=1, **settings)
        super().__init__(dimension, budget=budget, width=self._settings.width)
        self.loss = self._settings.loss
        self._kept = 1.0 - self._settings.step * self._settings.decay
        self._kernel: SketchedKernel | None = None
        self.rank = self._settings.rank
        self.weights = np.zeros(self.rank)
        self.since_change = 0

    def state(self) -> State:
        """Return the whole state: copies of arrays, and plain numbers."""
        kernel = {} if self._kernel is None else self._kernel.state()
        return super().state() | {PREFIX + name: value for name, value in kernel.items()}

    def with_state(self, state: State) -> Self:
        """Return a learner with the same parameters, restored from `state`.

        Raises
        ------
        ValueError
            ``state`` lacks an entry, or has one of another type or shape than this learner's.
        """
        learner = super().with_state(state)
        learner._kernel = None
        if learner._full:
            kernel = {
                name.removeprefix(PREFIX): value for name, value in state.items() if name.startswith(PREFIX)
            }
            learner._kernel = SketchedKernel.from_state(self._settings, StateReader(kernel))
        return learner

    def _score(self, event: FloatArray) -> float:
        if self._kernel is None:
            return super()._score(event)
        return float(dot(self.weights, self._features(event, self._kernel)))

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        loss = LOSSES[self.loss]
        if self._kernel is None:
            self._descend(event, descent_slope(loss, score, y, weight, self._settings.step))
            if self._full:
                self._first_map(event)
        else:
            self.since_change += 1
            if self.since_change == self._settings.cycle:
                self._change_map(event, score, self._kernel)
            features, step = self._features(event, self._kernel), self._settings.step
            self.weights *= self._kept
            slope = descent_slope(loss, score, y, weight, step * dot(features, features))
            self.weights -= step * slope * features

    def _descend(self, event: FloatArray, slope: float) -> None:
        """Apply stage 1's step of KOGD."""
        self.coefficients *= self._kept
        if slope != 0.0:
            self._add(event, -self._settings.step * slope)

    def _first_map(self, event: FloatArray) -> None:
        """Make the sketch from the stored points, which ends stage 1."""
        score = self._score(event)
        self._kernel = SketchedKernel.of(np.ascontiguousarray(self.points.T), self._settings)
        self.points[:] = self.coefficients[:] = 0.0
        self._keep_value(event, score, self._kernel)

    def _change_map(self, event: FloatArray, score: float, kernel: SketchedKernel) -> None:
        kernel.change(event)
        self.since_change = 0
        self._keep_value(event, score, kernel)

    def _keep_value(self, event: FloatArray, score: float, kernel: SketchedKernel) -> None:
        """Set the smallest weights that give the event this score (Eq. 8)."""
        features = self._features(event, kernel)
        self.weights = features * (score / max(dot(features, features), SMALLEST_SQUARE))

    def _features(self, event: FloatArray, kernel: SketchedKernel) -> FloatArray:
        features: FloatArray = kernel_features(event, *kernel.feature_map, self._gamma)
        return features
