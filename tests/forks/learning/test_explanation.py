"""The terms of a score: they sum to it, and each is what the mathematics says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forks import Forks, ForksSettings
from forks.algorithm.kernels import gaussian_matrix, precision

DIMENSION = 5
BEFORE, AFTER = 30, 400
"""Events after which a learner with a budget of 60 is in stage 1, and in stage 2."""
CASES: dict[str, ForksSettings] = {
    "practical": ForksSettings.practical(DIMENSION, budget=60, cycle=40),
    "paper": ForksSettings.paper(DIMENSION, budget=60, width=2.0, cycle=40),
    "offset": ForksSettings.practical(DIMENSION, budget=60, offset_column=4, cycle=40),
    "columns": ForksSettings.practical(
        DIMENSION, budget=60, linear_columns=(1, 4), kernel_columns=(0, 3), entity_blocks=((0, 1),)
    ),
    "squared": ForksSettings.practical(DIMENSION, budget=60, loss="squared", cycle=40),
    "bounded": ForksSettings.practical(DIMENSION, budget=60, clip=0.4, offset_column=0, cycle=40),
    "bounded, untracked": ForksSettings.practical(DIMENSION, budget=60, clip=0.4, tracking=False, cycle=40),
    "untracked": ForksSettings.practical(DIMENSION, budget=60, tracking=False, standardize=False, cycle=40),
}


def events(count: int) -> tuple[Any, Any]:
    """Return events whose labels flip near the end, so that corrections of tracking come to have weight."""
    chance = np.random.default_rng(5)
    X = chance.normal(size=(count, DIMENSION))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] > 0, 1.0, -1.0)
    y[-min(60, count // 4) :] *= -1.0
    return X, y


@pytest.mark.parametrize("count", [0, BEFORE, AFTER])
@pytest.mark.parametrize("name", CASES)
def test_terms_sum_to_the_score(name: str, count: int) -> None:
    learner, (X, y) = Forks(CASES[name]), events(max(count, 20))
    learner.learn_many(X[:count], y[:count])
    before, clipped = learner.state(), 0
    for x in X[:20]:
        explanation = learner.explain_one(x)
        assert explanation.score == learner.predict_one(x)
        assert abs(explanation.terms.sum() - explanation.score) < 1e-12
        clipped += explanation.clipping != 0.0
        if name == "columns":
            assert explanation.columns[[0, 4]].tolist() == [0.0, 0.0]
    assert (clipped > 0) == (name.startswith("bounded") and count > 0)
    assert all(np.array_equal(value, before[key]) for key, value in learner.state().items())


@pytest.mark.parametrize("name", ["practical", "untracked", "offset", "paper"])
def test_terms_are_products_of_weights_and_features(name: str) -> None:
    settings = CASES[name]
    learner, (X, y) = Forks(settings), events(AFTER)
    learner.learn_many(X, y)
    state: dict[str, Any] = dict(learner.state())
    x, linear = X[7], settings.linear_features
    inputs = x
    if settings.standardize:
        inputs = (x - state["mean"]) / np.sqrt(state["squares"] / state["updates"])
    weights = state["weights"][:linear]
    if settings.tracking:
        corrections = state["corrections"].copy()
        corrections[2] *= state["phase"][0] != 0.0
        weights = weights + state["shares"][1:] @ corrections
        assert state["shares"][0] < 0.99  # else a test that leaves corrections out would pass
    explanation = learner.explain_one(x)
    assert explanation.offset == (x[4] if name == "offset" else 0.0)
    if linear:
        assert explanation.bias == pytest.approx(weights[0], abs=1e-12)
        np.testing.assert_allclose(explanation.columns, weights[1:] * inputs, atol=1e-9)
    else:
        assert not explanation.columns.any()
    assert abs(explanation.kernel) > 1e-3


def test_the_kernel_term_of_stage_one_is_the_expansion() -> None:
    settings = CASES["paper"]
    learner, (X, y) = Forks(settings), events(BEFORE)
    learner.learn_many(X, y)
    state: dict[str, Any] = dict(learner.state())
    kernel = gaussian_matrix(X[:1], state["points"], precision(settings.width))
    assert learner.explain_one(X[0]).kernel == pytest.approx(float(kernel[0] @ state["coefficients"]))


def test_what_cannot_be_predicted_is_not_explained() -> None:
    with pytest.raises(ValueError, match="x"):
        Forks(CASES["practical"]).explain_one([1.0, np.nan, 0.0, 0.0, 0.0])
