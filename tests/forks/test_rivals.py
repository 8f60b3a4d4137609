from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks.arrays import FloatArray
from forks.rivals import FourierNewton, MatrixFactorisation, RunningMeans

pairs = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([-1.0, 1.0])), min_size=1, max_size=40
)


@given(pairs)
def test_running_means_are_smoothed_means_of_all_labels_before(events: list[tuple[int, int, float]]) -> None:
    fixed, running = RunningMeans("fixed"), RunningMeans("running")
    for i, (user, item, y) in enumerate(events):
        past = [(u, v, float(label > 0)) for u, v, label in events[:i]]
        mean = (sum(label for *_, label in past) + 0.5) / (i + 1)
        of_user = [label for u, _, label in past if u == user]
        of_item = [label for _, v, label in past if v == item]
        means = [(sum(labels) + 10 * mean) / (len(labels) + 10) for labels in (of_user, of_item)]
        assert fixed.predict_one((user, item)) == pytest.approx(sum(means) - 1, abs=1e-12)
        assert running.predict_one((user, item)) == pytest.approx(sum(means) - mean - 0.5, abs=1e-12)
        fixed.learn_one((user, item), y)
        running.learn_one((user, item), y)


@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_matrix_factorisation_steps_down_the_gradient_of_its_regularised_loss(y: float) -> None:
    step, decay = 0.1, 0.3
    model = MatrixFactorisation(rank=3, step=step, decay=decay)
    model.learn_one(("u", "i"), 1.0)
    user, item = model._users["u"], model._items["i"]
    mean = (0.5 + 1.0) / 2  # of the one label and half a label before it
    before = np.concatenate([user.factors, item.factors, [user.bias, item.bias]])

    def objective(v: FloatArray) -> float:
        error = float(y > 0) - (mean + v[6] + v[7] + v[:3] @ v[3:6])
        return float(error**2 + decay * v @ v) / 2

    gradient = [(objective(before + h) - objective(before - h)) / 2e-6 for h in 1e-6 * np.eye(8)]
    model.learn_one(("u", "i"), y)
    after = np.concatenate([user.factors, item.factors, [user.bias, item.bias]])
    np.testing.assert_allclose(after, before - step * np.array(gradient), atol=1e-8)


def test_matrix_factorisation_learns_tastes_that_biases_cannot_tell() -> None:
    chance = np.random.default_rng(0)
    model = MatrixFactorisation(decay=0.01)
    wrong = 0
    for i in range(4000):
        user, item = (int(n) for n in chance.integers(0, 10, 2))
        y = 1.0 if (user + item) % 2 else -1.0
        wrong += i >= 3000 and (model.predict_one((user, item)) > 0) != (y > 0)
        model.learn_one((user, item), y)
    assert wrong < 50


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
    learner = FourierNewton(3, features=20_000, width=1.5)
    a, b = np.array([0.3, -1.0, 0.5]), np.array([-0.4, 0.2, 0.1])
    waves = [np.cos(learner._omega @ x + learner._phase) for x in (a, b)]
    kernel = np.exp(-np.sum((a - b) ** 2) / (2 * 1.5**2))
    assert 2 * float(np.mean(waves[0] * waves[1])) == pytest.approx(kernel, abs=0.03)


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("rank", lambda: MatrixFactorisation(rank=0)),
        ("step", lambda: MatrixFactorisation(step=0.0)),
        ("decay", lambda: MatrixFactorisation(decay=-1.0)),
        ("prior_weight", lambda: RunningMeans(prior_weight=0.0)),
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


def test_fourier_newton_refuses_a_vector_of_another_shape() -> None:
    with pytest.raises(ValueError, match=r"x must have shape \(2,\), not \(3,\)"):
        FourierNewton(2).predict_one([1.0, 2.0, 3.0])
