"""Online gradient descent on random Fourier features."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from forks.arrays import FloatArray
from forks.compiled.products import dot, vecmat
from forks.compiled.trigonometry import cosine_and_sine
from forks.jit import njit
from forks.losses import LOSSES, LossName
from forks.randomness import Purpose, normals
from forks.rivals.base.learner import VectorRival, at_least, known_loss, positive
from forks.rivals.base.weights import descent_slope


class FOGD(VectorRival):
    """Gradient descent on random features whose inner products approximate the Gaussian kernel.

    z(x) consists of cos(u'x) and sin(u'x) for each of D frequencies u, normal with variance 1 / width^2, and
    w <- w - step l'(w'z) z. Here the features are divided by sqrt(D), so that z(x)'z(y) is near k(x, y) and
    steps are as long as those of kernel gradient descent. The paper does not divide, so that its steps are D
    times as long: its eta is ``step`` / D. An event costs O(D dimension).

    A label of weight h has the slopes of its steps together in place of l'(w'z)
    (`forks.rivals.base.weights.descent_slope`), with |z| = 1.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    frequencies
        Number D of frequencies, half the number of features, >= 1; the papers use four times the rivals'
        budget.
    step
        Step size eta D, > 0.
    width
        Width of the Gaussian kernel, > 0.
    loss
        Loss: ``hinge``, ``squared_hinge`` or another of `forks.losses`.
    seed
        Seed of the frequencies, >= 0.

    References
    ----------
    Lu et al., Large Scale Online Kernel Learning, JMLR 17, 2016.

    Examples
    --------
    >>> learner = FOGD(1, frequencies=10)
    >>> learner.learn_one([2.0], 1)
    1.0
    >>> round(learner.predict_one([2.0]), 6)  # step k(x, x)
    0.2
    """

    arrays: ClassVar = {"weights": (float, ("features",))}
    no_weights = None

    def __init__(
        self,
        dimension: int,
        *,
        frequencies: int = 200,
        step: float = 0.2,
        width: float = 1.0,
        loss: LossName = "hinge",
        seed: int = 0,
    ) -> None:
        super().__init__(dimension)
        self.loss = known_loss(loss)
        self._step = positive("step", step)
        count = dimension * at_least("frequencies", frequencies, 1)
        drawn = normals(at_least("seed", seed, 0), Purpose.FREQUENCIES, 0, count)
        self._frequencies = drawn.reshape(dimension, frequencies) / positive("width", width)
        self.features = 2 * frequencies
        self.weights = np.zeros(self.features)

    def _score(self, event: FloatArray) -> float:
        return float(dot(self.weights, waves(event, self._frequencies)))

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        slope = descent_slope(LOSSES[self.loss], score, y, weight, self._step)
        if slope != 0.0:
            self.weights -= self._step * slope * waves(event, self._frequencies)


@njit(cache=True, allocates=True)
def waves(x: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Return cos(u'x) / sqrt(D) for the D columns u of ``frequencies``, then sin(u'x) / sqrt(D), (2 D,)."""
    count = frequencies.shape[1]
    out = np.empty(2 * count)
    vecmat(x, frequencies, out[count:])
    scale = 1.0 / math.sqrt(count)
    for i in range(count):
        cosine, sine = cosine_and_sine(out[count + i])
        out[i] = scale * cosine
        out[count + i] = scale * sine
    return out
