"""PROS-N-KONS: projected row sampling in a Nystrom space, with kernel online Newton steps."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from forks.algorithm.kernels import precision
from forks.algorithm.newton import NewtonState, clipped, newton_step, project
from forks.arrays import FloatArray
from forks.compiled.products import dot
from forks.losses import LOSSES, LossName, loss_slope
from forks.randomness import Purpose, uniform
from forks.rivals.base.budgeted import kernel_row
from forks.rivals.base.learner import VectorRival, at_least, known_loss, not_negative, positive
from research.rivals.whitening import append_point, leverage, span_coordinates


class PROSNKONS(VectorRival):
    """Online Newton Step in the span of a dictionary of points that grows with the stream.

    An event enters the dictionary with the probability p = min(beta tau, 1), where tau estimates its ridge
    leverage score from the dictionary (KORS): tau = (1 + epsilon) r / (r + gamma) with r = k(x, x) - k'S (S K
    S + gamma I)^-1 S k. K is the kernel matrix of the dictionary, k its kernel with x, and S the diagonal of
    p_i^(-1/2). When an event enters, the features become the Nystrom features of the new dictionary, and the
    steps of `forks.algorithm.newton` restart from w = 0 and A = alpha I, with A = alpha I + eta sum g g'. The
    label of an event that enters is not learned. (The paper makes the features from the eigenvectors of K.
    Here they come from its Cholesky factor, which grows with K; a rotation of the features changes no score.)

    With m points an event costs O(m (dimension + m)), whether it enters or not. By the paper, m grows only
    with the stream's effective dimension, and the regret is logarithmic, for losses that are curved along
    their gradient. A ``budget`` ends the growth, as in the budgeted version of FORKS's experiments (appendix
    J.2); after that there are no more draws and no more restarts.

    The defaults of alpha, eta and loss are those that FORKS, appendix H, has for itself. It does not say with
    which ones it ran PROS-N-KONS, nor the values of gamma, beta and epsilon. Whether an event enters is
    decided when its label is learned.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    width
        Width of the Gaussian kernel, > 0.
    alpha
        A starts at alpha I; > 0.
    eta
        Weight of g g', >= 0.
    clip
        Bound C of the scores, which are kept in [-C, C]; > 0, may be infinite.
    loss
        Loss: ``hinge``, ``logistic`` or another of `forks.losses`.
    gamma
        Regularisation of the leverage scores, > 0.
    beta
        Entries of the dictionary per leverage score, > 0.
    epsilon
        Assumed accuracy of the estimates, >= 0.
    budget
        Largest number of points in the dictionary, >= 1; None for no limit.
    seed
        Seed of the draws that decide which events enter, >= 0.

    References
    ----------
    Calandriello, Lazaric and Valko, Efficient Second-Order Online Kernel Learning with Adaptive Embedding,
    NIPS 2017.

    Examples
    --------
    >>> learner = PROSNKONS(1, alpha=1.0, budget=1, beta=100.0)
    >>> learner.learn_one([0.0], 1), learner.predict_one([0.0])  # it enters
    (1.0, 0.0)
    >>> learner.learn_one([0.0], 1), round(learner.predict_one([0.0]), 6)  # A = 1 + 0.5
    (1.0, 0.666667)
    """

    arrays: ClassVar = {
        "points": (float, ("dimension", None)),
        "leverages": (float, (None, None)),
        "basis": (float, (None, None)),
        "weights": (float, (None,)),
        "inverse_hessian": (float, (None, None)),
    }
    numbers: ClassVar = {"count": int}

    def __init__(
        self,
        dimension: int,
        *,
        width: float = 1.0,
        alpha: float = 0.01,
        eta: float = 0.5,
        clip: float = math.inf,
        loss: LossName = "hinge",
        gamma: float = 1.0,
        beta: float = 1.0,
        epsilon: float = 0.5,
        budget: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(dimension)
        self.loss = known_loss(loss)
        self._precision = precision(positive("width", width))
        self._alpha = positive("alpha", alpha)
        self._eta = not_negative("eta", eta)
        self._clip = positive("clip", clip)
        self._gamma = positive("gamma", gamma)
        self._beta = positive("beta", beta)
        self._epsilon = not_negative("epsilon", epsilon)
        self._budget = math.inf if budget is None else at_least("budget", budget, 1)
        self._seed = at_least("seed", seed, 0)
        self.count = 0
        self.points = np.empty((dimension, 0))
        self.leverages = np.empty((0, 0))
        self.basis = np.empty((0, 0))
        self._restart()

    def _restart(self) -> None:
        """Restart Newton's state in the features of the dictionary."""
        self.weights, self.inverse_hessian = NewtonState.prior(self.basis.shape[1], self._alpha)

    def _score(self, event: FloatArray) -> float:
        z = span_coordinates(self.basis, kernel_row(event, self.points, self._precision))
        return float(clipped(dot(self.weights, z), self._clip))

    def _learn(self, event: FloatArray, y: float, _score: float, _weight: float, /) -> None:
        k = kernel_row(event, self.points, self._precision)
        if not self._enters(event, k):
            self._step(span_coordinates(self.basis, k), y)
        self.count += 1

    def _enters(self, event: FloatArray, k: FloatArray) -> bool:
        """Draw whether an event enters the dictionary, add it if so, and return whether it entered."""
        if len(k) >= self._budget:
            return False
        z = span_coordinates(self.leverages, k)
        tau = (1.0 + self._epsilon) * leverage(z, 1.0, self._gamma)
        p = min(self._beta * tau, 1.0)
        if uniform(self._seed, Purpose.DICTIONARY, self.count) >= p:
            return False
        self.points = np.column_stack([self.points, event])
        self.leverages = append_point(self.leverages, z, 1.0 / math.sqrt(p), self._gamma)
        self.basis = append_point(self.basis, span_coordinates(self.basis, k), 1.0, 0.0)
        self._restart()
        return True

    def _step(self, z: FloatArray, y: float) -> None:
        newton, workspace = NewtonState(self.weights, self.inverse_hessian), np.empty(len(z))
        slope = loss_slope(LOSSES[self.loss], project(newton, z, self._clip, workspace), y)
        newton_step(newton, z, slope, self._eta * slope * slope, workspace)
