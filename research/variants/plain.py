"""The second stage of FORKS between two changes of its map, in plain NumPy, to compare with compiled code."""

from __future__ import annotations

import numpy as np

from forks import Forks
from forks.algorithm.kernels import precision
from forks.arrays import FloatArray


class PlainForks:
    """Feature map and Online Newton Step for hinge loss, one event at a time.

    `predict_one` and `learn_one` each compute the features. `predict_and_learn`, for labels without delay,
    computes them once.

    Parameters
    ----------
    learner
        Learner with the `paper` preset in stage 2, whose state is the start.
    """

    def __init__(self, learner: Forks) -> None:
        state = {name: np.asarray(value) for name, value in learner.state().items()}
        self._gamma = precision(learner.settings.width)
        self._sigma = learner.settings.sigma + learner.settings.eta
        self._landmarks = state["points"][state["landmarks"]]
        self._Z = state["Z"]
        self._w = state["weights"]
        self._inverse = state["inverse_hessian"]

    def predict_one(self, x: FloatArray) -> float:
        """Return the score of ``x``, (dimension,)."""
        return float(self._w @ self._features(x))

    def learn_one(self, x: FloatArray, y: float) -> None:
        """Learn the label of ``x``, -1 or 1."""
        z = self._features(x)
        self._step(z, y, float(self._w @ z))

    def predict_and_learn(self, x: FloatArray, y: float) -> float:
        """Return the score of ``x`` and learn its label."""
        z = self._features(x)
        score = float(self._w @ z)
        self._step(z, y, score)
        return score

    def _features(self, x: FloatArray) -> FloatArray:
        features: FloatArray = np.exp(-self._gamma * ((self._landmarks - x) ** 2).sum(axis=1)) @ self._Z
        return features

    def _step(self, z: FloatArray, y: float, score: float) -> None:
        if y * score < 1.0:
            u = self._inverse @ z
            q = 1.0 + self._sigma * (z @ u)
            self._inverse -= np.outer(u, u) * (self._sigma / q)
            self._w += y * u / q
