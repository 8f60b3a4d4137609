"""FORKS as its authors' published code is known to do it, where that departs from Algorithm 1.

Only rounds with a loss count towards the cycle. A point that enters the sketch is forgotten at once, so the
stored points and the landmarks stay those of stage 1. Taking TISVD's second basis from the wrong factor
is left out: of a symmetric sketch, both factors span the same space, and `forks.tisvd` keeps one basis.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lstsq

from bench.counting import Played, played_of
from bench.plain import PlainForks
from bench.sets import Labelled
from forks import Forks, ForksSettings
from forks.arrays import FloatArray
from forks.feature_map import RELATIVE_CUTOFF
from forks.kernels import gaussian_matrix
from forks.newton import NewtonState
from forks.sjlt import Sjlt
from forks.tisvd import Factors, tisvd


class PublishedForks(PlainForks):
    """Stage 2 of the published code, for hinge loss.

    Parameters
    ----------
    learner : with the `paper` preset, at the beginning of stage 2
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
        """Let ``x`` enter the sketch and forget it; reset what was learned."""
        s = self._sjlt.rows(np.array([self._entered])).dense()[0]
        self._entered += 1
        q = self._rows.project(gaussian_matrix(x[None, :], self._points, self._gamma)[0])
        self._phi_pm = self._phi_pm + np.outer(
            s, gaussian_matrix(x[None, :], self._landmarks, self._gamma)[0]
        )
        self._factors = tisvd(self._factors, np.column_stack([s, q, s]), np.column_stack([q, s, s]))
        target = self._factors.vectors * np.sqrt(np.abs(self._factors.values))
        self._Z, *_ = lstsq(self._phi_pm, target, cond=RELATIVE_CUTOFF)
        self._w, self._inverse = NewtonState.prior(self._settings.rank, self._settings.alpha)


def play_published(settings: ForksSettings, data: Labelled) -> Played:
    """Predict and learn each row in turn; stage 1, too, learns from rounds with a loss only."""
    learner = Forks(settings)
    scores = np.empty(len(data.y))
    start = 0
    while start < len(scores) and learner.state()["stage"] == 1:
        scores[start] = learner.predict_one(data.X[start])
        if data.y[start] * scores[start] < 1.0:
            learner.learn_one(data.X[start], data.y[start])
        start += 1
    if start < len(scores):
        published = PublishedForks(learner)
        for i in range(start, len(scores)):
            scores[i] = published.predict_and_learn(data.X[i], data.y[i])
    return played_of(scores, data.y, start)
