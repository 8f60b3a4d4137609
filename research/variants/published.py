"""FORKS as in its authors' published code, where that is known to depart from Algorithm 1.

Only rounds with a loss count towards the cycle. A point that enters the sketch is not stored, so the stored
points and the landmarks remain those of stage 1. One departure is left out, TISVD's second basis made from
the wrong factor: the factors of a symmetric sketch span the same space, and `forks.algorithm.tisvd` keeps one
basis.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lstsq

from forks import Forks, ForksSettings
from forks.algorithm.feature_map import CUTOFF
from forks.algorithm.kernels import gaussian_matrix
from forks.algorithm.newton import NewtonState
from forks.algorithm.sjlt import Sjlt
from forks.algorithm.tisvd import Factors, tisvd
from forks.arrays import FloatArray
from research.variants.plain import PlainForks


class PublishedSecondStage(PlainForks):
    """Stage 2 of the published code, for hinge loss.

    Parameters
    ----------
    learner
        Learner with the `paper` preset at the beginning of stage 2.
    """

    def __init__(self, learner: Forks) -> None:
        super().__init__(learner)
        state = {name: np.asarray(value) for name, value in learner.state().items()}
        self._settings = learner.settings
        self._points = state["points"]
        self._phi_pm = state["phi_pm"]
        self._factors = Factors(state["eigenvectors"], state["eigenvalues"])
        self._sjlt = Sjlt(self._settings.sketch_size, self._settings.blocks, self._settings.seed)
        self._rows = self._sjlt.rows(state["serials"])
        self._entered = len(self._points)
        self._losses = 0

    def predict_and_learn(self, x: FloatArray, y: float) -> float:
        """Return the score of ``x``, (dimension,), and learn its label; change the map if that is due."""
        score = super().predict_and_learn(x, y)
        if y * score < 1.0:
            self._losses += 1
            if self._losses > self._settings.cycle:
                self._change_map(x)
                super().predict_and_learn(x, y)
                self._losses = 1
        return score

    def _change_map(self, x: FloatArray) -> None:
        """Add ``x`` to the sketch without storing it, and reset Newton's state."""
        s = self._sjlt.rows(np.array([self._entered])).dense()[0]
        self._entered += 1
        q = self._rows.project(gaussian_matrix(x[None, :], self._points, self._gamma)[0])
        self._phi_pm = self._phi_pm + np.outer(
            s, gaussian_matrix(x[None, :], self._landmarks, self._gamma)[0]
        )
        self._factors = tisvd(self._factors, np.column_stack([s, q, s]), np.column_stack([q, s, s]))
        target = self._factors.vectors * np.sqrt(np.abs(self._factors.values))
        self._Z, *_ = lstsq(self._phi_pm, target, cond=CUTOFF)
        self._w, self._inverse = NewtonState.prior(self._settings.rank, self._settings.alpha)


class PublishedForks:
    """Both stages of the published code, with the interface of `research.harness.counting.Learner`.

    Stage 1 also learns only from rounds with a loss.

    Parameters
    ----------
    settings
        Settings of the `paper` preset for hinge loss.
    """

    def __init__(self, settings: ForksSettings) -> None:
        self._first = Forks(settings)
        self._second: PublishedSecondStage | None = None

    def predict_and_learn_many(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Predict and then learn each row of ``X`` (n, dimension) in order; return the scores, (n,)."""
        return np.array([self._predict_and_learn(x, label) for x, label in zip(X, y.tolist(), strict=True)])

    @property
    def in_stage_one(self) -> bool:
        """Whether there is no map yet."""
        return self._second is None

    def _predict_and_learn(self, x: FloatArray, y: float) -> float:
        if self._second is not None:
            return self._second.predict_and_learn(x, y)
        score = self._first.predict_one(x)
        if y * score < 1.0:
            self._first.learn_one(x, y)
            if self._first.state()["stage"] == 2:
                self._second = PublishedSecondStage(self._first)
        return score
