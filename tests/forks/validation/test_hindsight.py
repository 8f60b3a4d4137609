from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from forks import LOSSES, LossName
from forks.arrays import FloatArray
from forks.validation import LinearPredictor, best_linear
from forks.validation.hindsight import losses
from tests.support.examples import examples

NAMES: tuple[LossName, ...] = get_args(LossName)


def noisy_stream(seed: int, rows: int = 200) -> tuple[FloatArray, FloatArray]:
    """Columns of very different scales, one that never varies, one that is the sum of two others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [1.0, 1e-3, 1e4] + [0.0, 5.0, -1e3]
    y = np.where(X[:, 0] + 500 * (X[:, 1] - 5.0) + rng.normal(size=rows) > 0.3, 1.0, -1.0)
    return np.column_stack([X, np.full(rows, 7.0), X[:, 0] + X[:, 1]]), y


def total(predictor: LinearPredictor, X: FloatArray, y: FloatArray, loss: LossName) -> float:
    return float(losses(LOSSES[loss], predictor.scores(X), y).sum())


@examples(40)
@given(seed=st.integers(0, 50), loss=st.sampled_from(NAMES), step=st.sampled_from([1e-3, 0.1, 3.0]))
def test_no_other_linear_predictor_has_a_smaller_loss(seed: int, loss: LossName, step: float) -> None:
    X, y = noisy_stream(seed)
    best = best_linear(X, y, loss)
    least = total(best, X, y, loss)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        away = step * rng.normal(size=6)
        other = LinearPredictor(best.weights + away[:-1] / (1e-12 + X.std(axis=0)), best.intercept + away[-1])
        assert least <= total(other, X, y, loss) + 1e-6 * len(y)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_the_slope_at_the_minimum_of_a_smooth_loss_is_zero(loss: LossName) -> None:
    X, y = noisy_stream(1)
    best = best_linear(X, y, loss)
    scale, mean, least = X[:, :3].std(axis=0), X[:, :3].mean(axis=0), total(best, X, y, loss)
    for column in range(3):
        for step in (-1e-3, 1e-3):
            weights = best.weights.copy()
            weights[column] += step / scale[column]
            moved = LinearPredictor(weights, best.intercept - step / scale[column] * mean[column])
            # At a minimum, a step costs by its square; by its first power were there a slope left.
            assert 0.0 <= total(moved, X, y, loss) - least + 1e-9 <= 2.0 * len(y) * step**2


def test_the_least_hinge_loss_is_that_of_the_plain_linear_program() -> None:
    X, y = noisy_stream(2, rows=60)
    rows, columns = X.shape
    # Variables: weights, intercept, and for each row a slack that is at least 1 - y (x w + b).
    margins = np.column_stack([X, np.ones(rows)]) * y[:, None]
    cost = np.concatenate([np.zeros(columns + 1), np.ones(rows)])
    bounds = [(None, None)] * (columns + 1) + [(0, None)] * rows
    plain = linprog(cost, A_ub=np.column_stack([-margins, -np.eye(rows)]), b_ub=-np.ones(rows), bounds=bounds)
    assert total(best_linear(X, y, "hinge"), X, y, "hinge") == pytest.approx(plain.fun, rel=1e-6)


def test_where_a_hyperplane_separates_the_labels_nothing_is_left_to_lose() -> None:
    X = np.linspace(-1.0, 1.0, 40)[:, None]
    y = np.where(X[:, 0] > 0.2, 1.0, -1.0)
    for loss in ("logistic", "hinge", "squared_hinge"):
        assert total(best_linear(X, y, loss), X, y, loss) < 1e-3


def test_of_labels_that_are_all_the_same_the_intercept_knows_all() -> None:
    X = np.ones((5, 2))
    best = best_linear(X, np.ones(5), "squared")
    assert best.scores(X) == pytest.approx(np.ones(5))
    assert best.weights.tolist() == [0.0, 0.0]
