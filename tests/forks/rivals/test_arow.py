from __future__ import annotations

import numpy as np
import pytest

from forks.rivals import AROW


def test_is_the_closed_form_of_its_objective() -> None:
    # Its gradient by w and by Sigma set to zero, with the loss a parabola where there is one:
    # Sigma^-1 grows by x x' / r, and Sigma^-1 w by y x / r.
    chance = np.random.default_rng(3)
    r = 0.5
    learner = AROW(3, r=r)
    precision, w = np.eye(3), np.zeros(3)
    content = 0
    for x in chance.normal(size=(60, 3)):
        y = float(np.sign(x[0] + 0.5 * x[1] + 0.3 * chance.normal()))
        if y * (w @ x) < 1.0:
            shifted = precision @ w + y * x / r
            precision = precision + np.outer(x, x) / r
            w = np.linalg.solve(precision, shifted)
        else:
            content += 1
        learner.learn_one(x, y)
        np.testing.assert_allclose(learner.weights, w, atol=1e-10)
        np.testing.assert_allclose(learner.covariance, np.linalg.inv(precision), atol=1e-10)
    assert 0 < content < 60


def test_learns_a_plane_whose_columns_have_different_scales() -> None:
    X = np.random.default_rng(4).normal(size=(1000, 3)) * [100.0, 1.0, 0.1]
    y = np.sign(X @ [0.01, -2.0, 5.0])
    scores = AROW(3).predict_and_learn_many(X, y)
    assert np.mean(scores[500:] * y[500:] > 0) > 0.97


def test_a_setting_out_of_range_is_named() -> None:
    with pytest.raises(ValueError, match="r must be > 0"):
        AROW(1, r=0.0)
