"""The kernel online Newton step with a sampled Hessian."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from forks.arrays import FloatArray
from forks.losses import LossName
from forks.randomness import Purpose, uniform
from forks.rivals.base.learner import at_least, not_negative, positive
from research.rivals.kons import KONS
from research.rivals.whitening import append_point, leverage, span_coordinates


class SketchedKONS(KONS):
    """Variant of `KONS` in which an event enters A with the probability p = max(gamma, min(beta tau, 1)).

    tau estimates the ridge leverage score of the event's gradient, sqrt(eta) g, with regularisation alpha,
    from the gradients that entered before, with weights 1 / p: tau = (1 + epsilon) r / (r + alpha), where r
    is the squared part of the gradient outside of their regularised span. In A itself they have no such
    weights. An event that does not enter still moves w, with the current A. All events with a loss are
    therefore stored, but m, of which an event costs O(m^2), is only about gamma of their number or more. By
    the paper, the regret is 1 / gamma times that of `KONS`; with gamma = 1 the two are the same.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    gamma
        Least probability, in (0, 1].
    beta
        Entries per leverage score, >= 0.
    epsilon
        Assumed accuracy of the estimates, >= 0.
    width, alpha, eta, clip, loss
        Parameters of `KONS`.
    seed
        Seed of the draws that decide which events enter, >= 0.

    References
    ----------
    Calandriello, Lazaric and Valko, Second-Order Kernel Online Convex Optimization with Adaptive Sketching,
    ICML 2017.

    Examples
    --------
    >>> learner = SketchedKONS(1, gamma=0.1, alpha=1.0)
    >>> losses = learner.learn_many([[0.0]] * 100, [1, -1] * 50)
    >>> len(learner.entered) < 50 < len(learner.coefficients)
    True
    """

    arrays: ClassVar = {**KONS.arrays, "leverages": (float, (None, None))}
    numbers: ClassVar = {**KONS.numbers, "drawn": int}

    def __init__(
        self,
        dimension: int,
        *,
        gamma: float = 0.1,
        beta: float = 1.0,
        epsilon: float = 0.5,
        width: float = 1.0,
        alpha: float = 0.01,
        eta: float = 0.5,
        clip: float = math.inf,
        loss: LossName = "hinge",
        seed: int = 0,
    ) -> None:
        super().__init__(dimension, width=width, alpha=alpha, eta=eta, clip=clip, loss=loss)
        self._least = positive("gamma", gamma)
        if gamma > 1.0:
            raise ValueError(f"gamma must be > 0 and at most 1, not {gamma}")
        self._beta = not_negative("beta", beta)
        self._epsilon = not_negative("epsilon", epsilon)
        self._seed = at_least("seed", seed, 0)
        self.drawn = 0
        """Number of events for which entering was drawn."""
        self.leverages = np.empty((0, 0))
        """Like `hessian`, with weights 1 / p."""

    def _enters(self, k: FloatArray, weight: float) -> bool:
        z = span_coordinates(self.leverages, k)
        tau = (1.0 + self._epsilon) * leverage(z, weight, self._alpha)
        p = max(self._least, min(self._beta * tau, 1.0))
        enters = uniform(self._seed, Purpose.HESSIAN, self.drawn) < p
        self.drawn += 1
        if enters:
            self.leverages = append_point(self.leverages, z, math.sqrt(weight / p), self._alpha)
        return enters
