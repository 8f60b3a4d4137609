from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.paired import Metrics, mean_metrics, metrics, table, user_weights, weighted_auc
from forks.validation import auc, log_loss

SCORES = st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.integers(0, 3)), min_size=4, max_size=30)


@given(SCORES)
def test_metrics_under_weights_are_those_of_events_that_occur_so_often(
    events: list[tuple[int, bool, int]],
) -> None:
    events += [(0, True, 1), (1, False, 2)]  # both classes
    scores, positive, times = (np.array(column) for column in zip(*events, strict=True))
    scores = scores.astype(np.float64)
    found = metrics(scores, positive, np.array([np.ones(len(times)), times]))
    for row, repeats in zip(found.values, (np.ones_like(times), times), strict=True):
        own, labels = np.repeat(scores, repeats), np.repeat(positive, repeats)
        expected = [100.0 * np.mean((own > 0) != labels), auc(own, labels), log_loss(own, labels)]
        np.testing.assert_allclose(row, expected, rtol=1e-12)


def test_events_of_a_user_are_drawn_together() -> None:
    users = np.array([7, 3, 7, 5, 3])
    weights = user_weights(users, draws=50, seed=1)
    np.testing.assert_array_equal(weights[0], np.ones(5))
    np.testing.assert_array_equal(weights[:, [0, 1]], weights[:, [2, 4]])
    np.testing.assert_array_equal(weights[1:, [0, 1, 3]].sum(axis=1), 3.0)
    assert len(np.unique(weights[1:, :4], axis=0)) > 5


def test_the_error_is_that_of_the_mean_over_users() -> None:
    rng = np.random.default_rng(0)
    positive, wrong = rng.random(400) < 0.5, rng.random(400) < 0.3
    scores = np.where(wrong == positive, -1.0, 1.0)
    weights = user_weights(np.arange(400), draws=400)
    found = table({"a": [metrics(scores, positive, weights)]}, "a")
    assert found["a"]["mistakes"]["standard_error"] == pytest.approx(100.0 * wrong.std() / 20.0, rel=0.15)


def test_differences_are_paired_and_parts_are_independent() -> None:
    base = Metrics(np.array([[20.0, 0.8, 0.5], [10.0, 0.7, 0.4], [30.0, 0.9, 0.6]]))
    better = Metrics(base.values - [1.0, 0.0, 0.0] + [[0.0], [0.5], [-0.5]])
    found = table({"base": [base, base], "better": [better, better]}, "base")
    assert found["base"]["mistakes"] == {"mean": 20.0, "standard_error": round(10.0 / np.sqrt(2), 2)}
    assert found["better"]["mistakes"]["difference"] == -1.0
    assert found["better"]["mistakes"]["standard_error"] == round(0.5 / np.sqrt(2), 3)
    assert found["better"]["auc"]["difference"] == 0.0


def test_runs_are_averaged_draw_by_draw() -> None:
    runs = [Metrics(np.full((2, 3), value)) for value in (1.0, 2.0)]
    np.testing.assert_array_equal(mean_metrics(runs).values, 1.5)


def test_ties_count_half() -> None:
    scores, positive = np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True])
    assert weighted_auc(scores, positive, np.ones((1, 4))).tolist() == [0.875]
