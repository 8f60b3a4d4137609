"""Logistic Online Newton Step, linear or with random Fourier features beside the linear part."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from forks.arrays import FloatArray
from forks.losses import LOGISTIC, loss_curvature, loss_slope
from forks.moments import standardize, update_moments
from forks.newton import NewtonState, clipped, newton_step, project
from forks.products import dot


class FourierNewton:
    """`forks.Forks` of the `practical` preset, with a fixed random feature map in place of the sketch.

    The features are an intercept, the standardised columns, and sqrt(2 / D) cos(omega_i'x + b_i) for
    i = 1 ... D with omega_i normal of variance 1 / width^2 and b_i uniform in [0, 2 pi], whose inner
    products approximate the Gaussian kernel (Rahimi and Recht, NIPS 2007, Algorithm 1). Without them,
    D = 0, it is linear. The step is that of `forks.newton`, with the logistic loss's own curvature.

    Parameters
    ----------
    dimension : number of columns, >= 1
    features : D, >= 0
    width : of the Gaussian kernel, on standardised columns, > 0
    alpha : the inverse Hessian starts at I / alpha, > 0
    clip : scores are kept in [-clip, clip], > 0
    seed : of omega and b

    Examples
    --------
    >>> learner = FourierNewton(1, features=20)
    >>> for _ in range(20):
    ...     learner.learn_one([1.0], 1)
    ...     learner.learn_one([-1.0], -1)
    >>> learner.predict_one([1.0]) > 0 > learner.predict_one([-1.0])
    True
    """

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
        if dimension < 1:
            raise ValueError(f"dimension must be at least 1, not {dimension}")
        if features < 0:
            raise ValueError(f"features must be at least 0, not {features}")
        for name, value in (("width", width), ("alpha", alpha), ("clip", clip)):
            if not value > 0.0:
                raise ValueError(f"{name} must be > 0, not {value}")
        chance = np.random.default_rng(seed)
        self._omega = chance.standard_normal((features, dimension)) / width
        self._phase = chance.uniform(0.0, 2.0 * math.pi, features)
        self._clip = clip
        self._count = 0
        self._mean = np.zeros(dimension)
        self._squares = np.zeros(dimension)
        self._newton = NewtonState.prior(1 + dimension + features, alpha)
        self._room = np.empty(1 + dimension + features)

    def predict_one(self, x: ArrayLike) -> float:
        """Return the log-odds of ``x``, (dimension,)."""
        return float(clipped(dot(self._newton.weights, self._describe(self._vector(x))), self._clip))

    def learn_one(self, x: ArrayLike, y: float) -> None:
        """Learn the label ``y``, -1 or +1, of ``x``, (dimension,)."""
        vector = self._vector(x)
        z = self._describe(vector)
        score = project(self._newton, z, self._clip, self._room)
        slope, curvature = loss_slope(LOGISTIC, score, y), loss_curvature(LOGISTIC, score, y)
        newton_step(self._newton, z, slope, curvature, self._room)
        self._count += 1
        update_moments(vector, self._count, self._mean, self._squares)

    def _vector(self, x: ArrayLike) -> FloatArray:
        vector = np.asarray(x, dtype=np.float64)
        if vector.shape != self._mean.shape:
            raise ValueError(f"x must have shape {self._mean.shape}, not {vector.shape}")
        return vector

    def _describe(self, vector: FloatArray) -> FloatArray:
        """Return the features, (1 + dimension + D,)."""
        standard = np.empty_like(vector)
        standardize(vector, self._count, self._mean, self._squares, standard)
        waves = np.cos(self._omega @ standard + self._phase)
        return np.concatenate([[1.0], standard, math.sqrt(2.0 / max(1, len(waves))) * waves])
