from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from forks.arrays import FloatArray
from forks.rivals import SCW
from forks.rivals.scw import quantile

CONFIDENCE, C = 0.8, 0.6
PHI = NormalDist().inv_cdf(CONFIDENCE)


def cost(w: FloatArray, S: FloatArray, before: SCW, x: FloatArray, y: float) -> float:
    """Return the divergence of N(w, S) from the belief before, and C times the loss."""
    precision = np.linalg.inv(before.covariance)
    away = w - before.weights
    volumes = np.linalg.slogdet(precision @ S).logabsdet
    divergence = float(np.trace(precision @ S) + away @ precision @ away - volumes)
    loss = max(0.0, float(PHI * np.sqrt(x @ S @ x) - y * (w @ x)))
    return divergence / 2 + C * loss


def test_each_belief_is_the_best_compromise() -> None:
    chance = np.random.default_rng(0)
    learner = SCW(2, confidence=CONFIDENCE, C=C)
    kinds = set()
    for x in chance.normal(size=(40, 2)):
        y = 1.0 if x[0] - x[1] + 0.5 * chance.normal() > 0 else -1.0
        before = learner.copy()
        learner.learn_one(x, y)
        w, S = learner.weights, learner.covariance
        least = cost(w, S, before, x, y)
        for size in np.repeat([1e-1, 1e-2, 1e-3], 30):
            E = np.eye(2) + size * chance.normal(size=(2, 2))
            assert cost(w + size * chance.normal(size=2), E @ S @ E.T, before, x, y) > least - 1e-12
            assert cost(w, E @ S @ E.T, before, x, y) > least - 1e-12
        loss = PHI * np.sqrt(x @ S @ x) - y * (w @ x)
        kinds.add("content" if (w == before.weights).all() else "not enough" if loss > 1e-9 else "enough")
    assert kinds == {"content", "enough", "not enough"}


def test_learns_a_plane() -> None:
    X = np.random.default_rng(4).normal(size=(1000, 3)) * [10.0, 1.0, 0.1]
    y = np.sign(X @ [0.1, -2.0, 5.0])
    scores = SCW(3).predict_and_learn_many(X, y)
    assert np.mean(scores[500:] * y[500:] > 0) > 0.97


def test_an_event_whose_squares_are_zero_changes_nothing() -> None:
    learner = SCW(1)
    learner.learn_one([1.0], 1)
    before = learner.weights.copy()
    learner.learn_one([1e-200], -1)
    assert (learner.weights == before).all()


@pytest.mark.parametrize("confidence", [0.5000001, 0.6, 0.9, 0.99, 0.999999])
def test_the_quantile_is_that_of_the_normal_distribution(confidence: float) -> None:
    assert quantile(confidence) == pytest.approx(NormalDist().inv_cdf(confidence), rel=1e-9)


@pytest.mark.parametrize(("field", "value"), [("confidence", 0.5), ("confidence", 1.0), ("C", 0.0)])
def test_a_setting_out_of_range_is_named(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{field} must be"):
        SCW(1, **{field: value})
