"""`RunningMeans` and `MatrixFactorisation`, whose events are pairs of a user and an item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks.arrays import FloatArray
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


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("rank", lambda: MatrixFactorisation(rank=0)),
        ("step", lambda: MatrixFactorisation(step=0.0)),
        ("decay", lambda: MatrixFactorisation(decay=-1.0)),
        ("prior_weight", lambda: RunningMeans(prior_weight=0.0)),
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


def test_a_state_of_other_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^state\['\w+'\] has shape"):
        MatrixFactorisation(rank=2).with_state(MatrixFactorisation(rank=3).state())


def test_a_restored_factorisation_draws_what_comes_next() -> None:
    model = MatrixFactorisation(seed=3)
    model.learn_many([(1, 1), (2, 1)], [1, -1])
    restored = MatrixFactorisation(seed=3).with_state(model.state())
    for each in (model, restored):
        each.learn_one((9, 9), 1)
    np.testing.assert_array_equal(restored.rows, model.rows)
