"""Learners of other libraries, and FORKS itself, behind `predict_one` and `learn_one`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from river import compose, linear_model, preprocessing, tree
from sklearn.linear_model import SGDClassifier

from forks import Forks, ForksSettings
from forks.algorithm.moments import standardize, update_moments
from forks.arrays import FloatArray
from forks.rivals import FourierNewton
from pipeline.config.settings import Learner as Learning
from pipeline.features.feature_set import EFFECTS
from pipeline.model.learner_settings import learner_settings
from pipeline.records.fields import FEATURES_LENGTH
from research.rivals import MatrixFactorisation, RunningMeans

BLOCK = 50
"""Labels that scikit-learn's `partial_fit` is given at a time."""


class Learner(Protocol):
    """What a comparison asks of a learner."""

    def predict_one(self, x: Any) -> float:
        """Return a score, whose sign is the label."""

    def learn_one(self, x: Any, y: float) -> object:
        """Learn a label, -1 or +1."""


class RiverLearner:
    """A River classifier; its score is the log-odds of its probability.

    Parameters
    ----------
    model : takes features by name
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def predict_one(self, x: FloatArray) -> float:
        """Return the log-odds, 0 where the model says nothing yet."""
        p = self._model.predict_proba_one(_named(x)).get(True, 0.5)
        p = min(max(p, 1e-6), 1.0 - 1e-6)
        return math.log(p / (1.0 - p))

    def learn_one(self, x: FloatArray, y: float) -> None:
        """Learn a label, -1 or +1."""
        self._model.learn_one(_named(x), y > 0)


class ScikitLearner:
    """scikit-learn's logistic `SGDClassifier` by `partial_fit`, on features with running moments.

    It learns from blocks of labels: a call for each one costs a thousand times the step. Its own step sizes
    start so large that they measured four points worse than a steady one.
    """

    def __init__(self) -> None:
        self._model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01, random_state=0)
        self._learned = False
        self._waiting: list[tuple[FloatArray, float]] = []
        self._count = 0
        self._mean = np.zeros(FEATURES_LENGTH)
        self._squares = np.zeros(FEATURES_LENGTH)

    def predict_one(self, x: FloatArray) -> float:
        """Return the log-odds, 0 before anything was learned."""
        if not self._learned:
            return 0.0
        return float(self._model.coef_[0] @ self._standardized(x) + self._model.intercept_[0])

    def learn_one(self, x: FloatArray, y: float) -> None:
        """Keep a label, -1 or +1, and learn from all that were kept once they are a block."""
        self._count += 1
        update_moments(x, self._count, self._mean, self._squares)
        self._waiting.append((self._standardized(x), y))
        if len(self._waiting) == BLOCK:
            X, labels = (np.array(column) for column in zip(*self._waiting, strict=True))
            self._model.partial_fit(X, labels, classes=np.array([-1.0, 1.0]))
            self._learned = True
            self._waiting.clear()

    def _standardized(self, x: FloatArray) -> FloatArray:
        out = np.empty_like(x)
        standardize(x, self._count, self._mean, self._squares, out)
        return out


class Entry(NamedTuple):
    """A learner that takes part in a comparison.

    Parameters
    ----------
    make : makes a learner that knows nothing
    takes : ``features``, the running block, or ``pair``, user and video
    probable : whether scores are log-odds
    """

    make: Callable[[], Learner]
    takes: Literal["features", "pair"]
    probable: bool


def _practical(**changes: Any) -> Learner:
    return Forks(learner_settings(Learning.model_validate(changes), 0))


def _paper(events: int) -> Learner:
    return Forks(ForksSettings.paper(FEATURES_LENGTH, budget=100, width=2.0, cycle=3 * events // 10))


def _fourier(features: int, width: float = 1.0) -> Learner:
    return FourierNewton(FEATURES_LENGTH, features=features, width=width)


def entries(events: int) -> Mapping[str, Entry]:
    """Return all who take part, by name; ``events`` is N, which rho = floor(0.3 N) of the paper needs."""
    own_width = ForksSettings.practical(FEATURES_LENGTH).width
    return MappingProxyType(
        {
            "FORKS practical": Entry(_practical, "features", True),
            "FORKS practical, B = 100": Entry(lambda: _practical(budget=100), "features", True),
            "FORKS practical, nothing forgotten": Entry(
                lambda: _practical(memory=math.inf), "features", True
            ),
            "FORKS paper, B = 100": Entry(lambda: _paper(events), "features", False),
            "running means, sum > 1": Entry(lambda: RunningMeans("fixed"), "pair", False),
            "running means, above global mean": Entry(lambda: RunningMeans("running"), "pair", False),
            "matrix factorisation": Entry(MatrixFactorisation, "pair", False),
            "linear ONS": Entry(lambda: _fourier(0), "features", True),
            "ONS, 150 Fourier features, width 3": Entry(lambda: _fourier(150, 3.0), "features", True),
            "ONS, 150 Fourier features, our width": Entry(lambda: _fourier(150, own_width), "features", True),
            "scikit-learn SGDClassifier": Entry(ScikitLearner, "features", True),
            "River LogisticRegression": Entry(
                lambda: RiverLearner(
                    compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())
                ),
                "features",
                True,
            ),
            "River HoeffdingTreeClassifier": Entry(
                lambda: RiverLearner(tree.HoeffdingTreeClassifier()), "features", True
            ),
        }
    )


def _named(x: FloatArray) -> dict[str, float]:
    return dict(zip(EFFECTS, x.tolist(), strict=True))
