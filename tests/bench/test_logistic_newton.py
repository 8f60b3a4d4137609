from __future__ import annotations

import numpy as np
import pytest

from bench.logistic_newton import scores_of, standardised


def test_scores_are_those_of_the_dense_step() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 3)), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    rows, A, w = standardised(X), 2.0 * np.eye(4), np.zeros(4)
    expected = []
    for x, label in zip(rows, y, strict=True):
        expected.append(x @ w)
        gradient = -label * x / (1.0 + np.exp(label * (x @ w)))
        A += np.outer(gradient, gradient)
        w = w - np.linalg.solve(A, gradient) / 0.5
    assert scores_of(rows, y, gamma=0.5, epsilon=2.0).tolist() == pytest.approx(expected, rel=1e-9)
