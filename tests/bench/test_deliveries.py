"""Errors on invented deliveries: what is compared, and what is known when."""

from __future__ import annotations

import numpy as np
import pytest

from bench.deliveries import _least_squares, _running_mean, errors_of
from pipeline.sources.synth.size import Size


def test_all_methods_are_compared_over_the_same_orders() -> None:
    found = errors_of(Size(events=2_000, users=40, videos=30, days=2))
    assert [*found] == ["forks", "least_squares", "running_means", "running_mean"]
    assert found["forks"] < found["running_means"] < 20.0


def test_only_labels_that_came_before_are_known() -> None:
    order = np.array([0, 1, 3, 2, 4, 5])
    labels = np.array([10.0, 40.0, 0.0])
    assert _running_mean(order, labels, 30.0).tolist() == [30.0, 30.0, 20.0]


def test_least_squares_are_those_of_a_ridge_over_all_labels_that_came() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    order = np.arange(100).reshape(2, 50).T.ravel()
    found, rows = _least_squares(order, X, y), np.column_stack([X, np.ones(50)])
    for event in (0, 7, 49):
        known = rows[:event]
        weights = np.linalg.solve(known.T @ known + np.eye(4), known.T @ y[:event])
        assert found[event] == pytest.approx(rows[event] @ weights)
