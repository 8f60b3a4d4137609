from __future__ import annotations

import math

import numpy as np
import pytest

from forks.losses import LossName
from research.rivals import KONS, PROSNKONS
from tests.forks.rivals import naive
from tests.forks.rivals.dense import DenseNewton, orthonormal

ALPHA, ETA = 0.3, 0.4
EVENTS = naive.stream(100, 2)
G = orthonormal(naive.gram([x for x, _ in EVENTS]))


@pytest.mark.parametrize(
    ("loss", "clip"), [("hinge", math.inf), ("hinge", 1.1), ("logistic", 0.4), ("squared_hinge", 0.9)]
)
def test_is_newtons_step_with_the_dense_matrix(loss: LossName, clip: float) -> None:
    learner = KONS(2, width=naive.WIDTH, alpha=ALPHA, eta=ETA, clip=clip, loss=loss)
    dense = DenseNewton(len(G), ALPHA, ETA, clip, loss)
    slopes, moved = 0, 0
    for (x, y), g in zip(EVENTS, G, strict=True):
        assert learner.predict_one(x) == pytest.approx(dense.score(g), abs=1e-9)
        learner.learn_one(x, y)
        before = dense.w
        slopes += dense.learn(g, y) != 0.0
        moved += (dense.w != before).any()
    assert len(learner.entered) == slopes
    assert len(learner.coefficients) == moved
    assert slopes < moved or (loss, clip) != ("hinge", 1.1)  # projected, but without a loss


def test_pros_n_kons_with_all_points_in_its_dictionary_is_the_same() -> None:
    X = np.random.default_rng(0).normal(size=(6, 2))
    short = PROSNKONS(2, alpha=ALPHA, eta=ETA, beta=math.inf, budget=len(X))
    short.learn_many(X, np.ones(len(X)))
    assert short.points.T.tolist() == X.tolist()
    again = X[np.random.default_rng(1).integers(0, len(X), 80)]
    y = np.where(again[:, 0] > 0, 1.0, -1.0)
    exact = KONS(2, alpha=ALPHA, eta=ETA)
    expected = exact.predict_and_learn_many(again, y)
    np.testing.assert_allclose(short.predict_and_learn_many(again, y), expected, atol=1e-9)


def test_keeps_its_precision_over_many_alike_events() -> None:
    chance = np.random.default_rng(2)
    X = chance.normal(size=(500, 1))
    Y = chance.choice([-1.0, 1.0], 500)
    G = orthonormal(np.exp(-((X - X.T) ** 2) / 2.0))
    G = G[:, np.abs(G).max(axis=0) > 1e-8]
    learner = KONS(1, loss="logistic")
    dense = DenseNewton(G.shape[1], 0.01, 0.5, math.inf, "logistic")
    for x, y, g in zip(X, Y, G, strict=True):
        learner.learn_one(x, y)
        dense.learn(g, y)
    np.testing.assert_allclose(learner.predict_many(X), G @ dense.w, atol=1e-6)


@pytest.mark.parametrize(
    ("field", "value"), [("width", 0.0), ("alpha", 0.0), ("eta", -0.1), ("clip", 0.0), ("loss", "zero")]
)
def test_a_setting_out_of_range_is_named(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{field} must be"):
        KONS(1, **{field: value})  # type: ignore[arg-type]  # that is what is refused
