from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks import State
from forks.arrays import FloatArray
from forks.rivals import FourierNewton, Perceptron
from forks.rivals.base.learner import Rival
from research.rivals import MatrixFactorisation, RunningMeans

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
    model.learn_one((7, 7), 1.0)
    mean = (0.5 + 1.0) / 2  # of the one label and half a label before it

    def parameters() -> FloatArray:
        user, item = model.rows
        return np.concatenate([user[:3], item[:3], [user[3], item[3]]])

    before = parameters()

    def objective(v: FloatArray) -> float:
        error = float(y > 0) - (mean + v[6] + v[7] + v[:3] @ v[3:6])
        return float(error**2 + decay * v @ v) / 2

    gradient = [(objective(before + h) - objective(before - h)) / 2e-6 for h in 1e-6 * np.eye(8)]
    model.learn_one((7, 7), y)
    np.testing.assert_allclose(parameters(), before - step * np.array(gradient), atol=1e-8)


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


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ((1, 2, 3), r"x must be integers .* not int64 of \(3,\)"),
        (("ann", "film"), r"x must be integers .* not <U4 of \(2,\)"),
        ((1.0, 2.0), r"x must be integers .* not float64 of \(2,\)"),
        ((True, False), r"x must be integers .* not bool of \(2,\)"),
        (np.array([2**63, 1], dtype=np.uint64), r"x must be integers below 2\^63, not 9223372036854775808"),
        ((2**64, 1), r"x must be integers of at most 64 bits"),
        (((1, 2), 3), r"x must be integers of shape \(2,\): "),
    ],
)
def test_what_is_no_pair_is_named(x: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RunningMeans().predict_one(x)


@pytest.mark.parametrize(
    ("learner", "state"),
    [
        (FourierNewton(2), FourierNewton(3).state()),
        (FourierNewton(2), FourierNewton(2, features=1).state()),
        (MatrixFactorisation(rank=2), MatrixFactorisation(rank=3).state()),
        (Perceptron(2), Perceptron(3).state()),
    ],
)
def test_a_state_of_other_parameters_is_refused(learner: Rival[Any], state: State) -> None:
    with pytest.raises(ValueError, match=r"^state\['\w+'\] has shape"):
        learner.with_state(state)


def test_a_restored_factorisation_draws_what_comes_next() -> None:
    model = MatrixFactorisation(seed=3)
    model.learn_many([(1, 1), (2, 1)], [1, -1])
    restored = MatrixFactorisation(seed=3).with_state(model.state())
    for each in (model, restored):
        each.learn_one((9, 9), 1)
    np.testing.assert_array_equal(restored.rows, model.rows)
