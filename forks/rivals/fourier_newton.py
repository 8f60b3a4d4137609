"""Logistic Online Newton Step, linear or with random Fourier features beside the linear part."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from forks.algorithm.moments import standardize, update_moments
from forks.algorithm.newton import NewtonState, clipped, newton_step, project
from forks.algorithm.weighted import weighted_project_and_step
from forks.arrays import FloatArray
from forks.compiled.products import dot, matvec, rank_one_downdate, vecmat
from forks.compiled.trigonometry import cosine_and_sine
from forks.jit import njit
from forks.losses import LOGISTIC, LossName, loss_curvature, loss_slope
from forks.randomness import Purpose, fractions, normals
from forks.rivals.base.learner import VectorRival, at_least, positive


class FourierNewton(VectorRival):
    """Logistic Online Newton Step on a linear part and a fixed random feature map.

    It is `forks.Forks` with the `practical` preset, with a fixed map instead of the sketched one. The
    features are an intercept, the standardised columns, and sqrt(2 / D) cos(omega_i'x + b_i) for i = 1 ... D
    with omega_i normal of variance 1 / width^2 and b_i uniform in [0, 2 pi], whose inner products approximate
    the Gaussian kernel. With D = 0 it is linear. The step is that of `forks.algorithm.newton`, with the
    curvature of the logistic loss. Labels with weights are learned as those of `forks.Forks`:
    `forks.algorithm.weighted`.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    features
        Number D of random features, >= 0.
    width
        Width of the Gaussian kernel on standardised columns, > 0.
    alpha
        The inverse Hessian starts at I / alpha; > 0.
    clip
        Bound of the scores, which are kept in [-clip, clip]; > 0.
    seed
        Seed of omega and b, >= 0.

    References
    ----------
    Rahimi and Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007, Algorithm 1.
    FORKS: Fast Second-Order Online Kernel Learning using Incremental Sketching, Eq. 10.

    Examples
    --------
    >>> learner = FourierNewton(1, features=20)
    >>> losses = learner.learn_many([[1.0], [-1.0]] * 20, [1, -1] * 20)
    >>> learner.predict_one([1.0]) > 0 > learner.predict_one([-1.0])
    True
    """

    arrays: ClassVar = {
        "mean": (float, ("dimension",)),
        "squares": (float, ("dimension",)),
        "weights": (float, ("size",)),
        "inverse_hessian": (float, ("size", "size")),
    }
    numbers: ClassVar = {"count": int}
    no_weights = None
    loss: LossName = "logistic"

    def __init__(
        self,
        dimension: int,
        *,
        features: int = 0,
        width: float = 1.0,
        alpha: float = 1.0,
        clip: float = 10.0,
        seed: int = 0,
    ) -> None:
        super().__init__(dimension)
        at_least("features", features, 0)
        drawn = normals(at_least("seed", seed, 0), Purpose.FREQUENCIES, 0, features * dimension)
        self._omega = drawn.reshape(features, dimension) / positive("width", width)
        self._phase = 2.0 * math.pi * fractions(seed, Purpose.PHASES, 0, features)
        self._clip = positive("clip", clip)
        self.count = 0
        self.mean = np.zeros(dimension)
        self.squares = np.zeros(dimension)
        self.size = 1 + dimension + features
        self.weights, self.inverse_hessian = NewtonState.prior(self.size, positive("alpha", alpha))
        self._rebuild_derived()

    def _rebuild_derived(self) -> None:
        self._newton = NewtonState(self.weights, self.inverse_hessian)
        self._workspace = np.empty(self.size)

    def _score(self, event: FloatArray) -> float:
        return float(clipped(dot(self.weights, self._feature_vector(event)), self._clip))

    def _learn(self, event: FloatArray, y: float, _score: float, weight: float, /) -> None:
        z = self._feature_vector(event)
        if weight == 1.0:
            kept = project(self._newton, z, self._clip, self._workspace)
            slope, curvature = loss_slope(LOGISTIC, kept, y), loss_curvature(LOGISTIC, kept, y)
            newton_step(self._newton, z, slope, curvature, self._workspace)
        else:
            self._weighted_step(z, y, weight)
        self.count += 1
        update_moments(event, self.count, self.mean, self.squares)

    def _weighted_step(self, z: FloatArray, y: float, weight: float) -> None:
        score = float(dot(self.weights, z))
        kept = float(clipped(score, self._clip))
        u, root = np.empty(self.size), self._workspace
        vecmat(z, self.inverse_hessian, u)
        weighted_project_and_step(
            self.weights, z, u, score - kept, kept, y, weight, LOGISTIC, 0.0, True, self._clip, True, root
        )
        rank_one_downdate(self.inverse_hessian, root)

    def _feature_vector(self, vector: FloatArray) -> FloatArray:
        """Return the features, (1 + dimension + D,)."""
        standard = np.empty_like(vector)
        standardize(vector, self.count, self.mean, self.squares, standard)
        return np.concatenate([[1.0], standard, _waves(standard, self._omega, self._phase)])


@njit(cache=True, allocates=True)
def _waves(x: FloatArray, omega: FloatArray, phase: FloatArray) -> FloatArray:
    """Return sqrt(2 / D) cos(omega x + phase), (D,)."""
    out = matvec(omega, x)
    scale = math.sqrt(2.0 / max(1, out.shape[0]))
    for i in range(out.shape[0]):
        out[i] = scale * cosine_and_sine(out[i] + phase[i])[0]
    return out
