from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from forks import State
from forks.rivals import FourierNewton, Perceptron
from forks.rivals.base.learner import Rival


def test_fourier_newton_equals_the_dense_inverse() -> None:
    chance = np.random.default_rng(1)
    learner = FourierNewton(2, features=5, alpha=0.7)
    A, w = 0.7 * np.eye(8), np.zeros(8)
    X, y = chance.normal(size=(60, 2)), chance.choice([-1.0, 1.0], 60)
    for i in range(60):
        deviation = X[:i].std(axis=0) if i > 1 else np.full(2, np.inf)
        mean = X[:i].mean(axis=0) if i else np.zeros(2)
        standard = (X[i] - mean) / deviation
        waves = np.sqrt(2 / 5) * np.cos(learner._omega @ np.clip(standard, -10, 10) + learner._phase)
        z = np.concatenate([[1.0], np.clip(standard, -10, 10), waves])
        score = w @ z
        assert learner.predict_one(X[i]) == pytest.approx(score, abs=1e-9)
        learner.learn_one(X[i], y[i])
        p = 1 / (1 + np.exp(-score))
        A += p * (1 - p) * np.outer(z, z)
        w -= np.linalg.solve(A, (p - (y[i] > 0)) * z)


def test_fourier_features_approximate_the_gaussian_kernel() -> None:
    a, b = np.array([0.3, -1.0, 0.5]), np.array([-0.4, 0.2, 0.1])
    products = []
    for seed in range(40):  # many small learners, since one with n features has a matrix of n^2 numbers
        learner = FourierNewton(3, features=500, width=1.5, seed=seed)
        waves = [np.cos(learner._omega @ x + learner._phase) for x in (a, b)]
        products.append(2 * float(np.mean(waves[0] * waves[1])))
    kernel = np.exp(-np.sum((a - b) ** 2) / (2 * 1.5**2))
    assert float(np.mean(products)) == pytest.approx(kernel, abs=0.03)


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("dimension", lambda: FourierNewton(0)),
        ("features", lambda: FourierNewton(2, features=-1)),
        ("width", lambda: FourierNewton(2, width=0.0)),
        ("alpha", lambda: FourierNewton(2, alpha=0.0)),
        ("clip", lambda: FourierNewton(2, clip=0.0)),
    ],
)
def test_a_setting_out_of_range_is_named(field: str, make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=f"{field} must be"):
        make()


@pytest.mark.parametrize(
    ("learner", "state"),
    [
        (FourierNewton(2), FourierNewton(3).state()),
        (FourierNewton(2), FourierNewton(2, features=1).state()),
        (Perceptron(2), Perceptron(3).state()),
    ],
)
def test_a_state_of_other_parameters_is_refused(learner: Rival[Any], state: State) -> None:
    with pytest.raises(ValueError, match=r"^state\['\w+'\] has shape"):
        learner.with_state(state)
