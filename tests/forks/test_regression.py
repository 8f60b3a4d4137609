"""Squared loss: regression from settings to scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from forks import Forks, ForksSettings, State
from forks.arrays import FloatArray

NOISE = 0.2


def curved_stream(events: int, seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return points, what there is to know of their targets, and the noisy targets."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(events, 3))
    known = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, known, known + NOISE * rng.normal(size=events)


def array(state: State, name: str) -> FloatArray:
    entry = state[name]
    assert isinstance(entry, np.ndarray)
    return entry


def features(X: FloatArray, state: State, width: float) -> FloatArray:
    """The sum kernel's features by their definition: intercept, columns, kernel row times Z."""
    landmarks = array(state, "points")[array(state, "landmarks").astype(int)]
    distances = np.linalg.norm(X[:, None] - landmarks[None], axis=2)
    phi = np.exp(-(distances**2) / (2 * width**2)) @ array(state, "Z")
    return np.column_stack([np.ones(len(X)), X, phi])


def running_ridge(X: FloatArray, y: FloatArray) -> FloatArray:
    """What linear ridge regression on all events before says of each."""
    L = np.column_stack([np.ones(len(X)), X])
    A, b = np.eye(L.shape[1]), np.zeros(L.shape[1])
    predictions = np.empty(len(X))
    for i, (row, target) in enumerate(zip(L, y, strict=True)):
        predictions[i] = row @ np.linalg.solve(A, b)
        A += np.outer(row, row)
        b += target * row
    return predictions


def rms(errors: FloatArray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


@pytest.mark.parametrize("offset_column", [None, 2])
def test_between_two_maps_the_weights_are_the_ridge_regression_on_the_features(
    offset_column: int | None,
) -> None:
    """Newton's step with the loss's own curvature is exact for a quadratic: no step size is left in it."""
    X, _, y = curved_stream(400)
    offset = np.zeros(400) if offset_column is None else X[:, offset_column]
    settings = ForksSettings.practical(
        3,
        budget=30,
        width=1.5,
        loss="squared",
        standardize=False,
        cycle=10_000,
        bounded=False,  # a bounded learner changes its map more often at first
        offset_column=offset_column,
    )
    learner = Forks(settings)
    learner.learn_many(X[:40], y[:40])
    before = learner.state()
    learner.learn_many(X[40:], y[40:])
    after = learner.state()
    assert before["changes"] == after["changes"]
    z = features(X[40:], before, 1.5)
    A = np.linalg.inv(array(before, "inverse_hessian"))
    expected_A = A + 2 * z.T @ z
    expected = np.linalg.solve(expected_A, A @ array(before, "weights") + 2 * z.T @ (y - offset)[40:])
    np.testing.assert_allclose(array(after, "weights"), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        array(after, "inverse_hessian"), np.linalg.inv(expected_A), rtol=1e-6, atol=1e-9
    )
    np.testing.assert_allclose(
        learner.predict_many(X), offset + features(X, after, 1.5) @ expected, rtol=1e-6, atol=1e-8
    )


def test_a_noisy_curve_is_learned_far_better_than_by_a_line() -> None:
    X, known, y = curved_stream(3000)
    scores = Forks(ForksSettings.practical(3, budget=200, width=2.0, loss="squared")).predict_and_learn_many(
        X, y
    )
    error, linear = rms((scores - known)[500:]), rms((running_ridge(X, y) - known)[500:])
    assert error < linear / 4
    assert rms((scores - known)[2000:]) < 1.5 * NOISE


def test_on_a_line_the_kernel_part_costs_less_than_the_noise() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 3))
    known = X @ [1.0, -2.0, 0.5] + 0.5
    y = known + NOISE * rng.normal(size=2000)
    scores = Forks(ForksSettings.practical(3, loss="squared")).predict_and_learn_many(X, y)
    assert rms((scores - known)[500:]) < 0.75 * NOISE


def test_watch_ratios_are_predicted() -> None:
    """Ratios are skewed and never negative; what is asked for is their mean given the context."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 2))
    mean = 0.2 + 1.3 / (1 + np.exp(-2 * X[:, 0] * X[:, 1]))
    ratio = mean * rng.gamma(4.0, 0.25, size=4000)
    scores = Forks(ForksSettings.practical(2, width=1.0, loss="squared")).predict_and_learn_many(X, ratio)
    explained = 1 - np.mean((scores - mean)[1000:] ** 2) / np.var(mean[1000:])
    assert explained > 0.85


def test_the_loss_returned_is_the_squared_error_before_the_step() -> None:
    learner = Forks(ForksSettings.practical(1, loss="squared"))
    assert learner.learn_one([1.0], 3.0) == 9.0
    score = learner.predict_one([1.0])
    assert learner.learn_one([1.0], 1.25) == (score - 1.25) ** 2


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_scores_scale_with_the_targets(scale: float) -> None:
    X, _, y = curved_stream(400)
    settings = ForksSettings.practical(3, budget=30, cycle=100, loss="squared")
    scores = Forks(settings).predict_and_learn_many(X, y)
    scaled = Forks(settings).predict_and_learn_many(X, scale * y)
    np.testing.assert_allclose(scaled, scale * scores, rtol=1e-6, atol=1e-8 * scale)


def test_scores_are_clipped_only_where_asked_for() -> None:
    assert ForksSettings.practical(3, loss="squared").clip == math.inf
    X, _, y = curved_stream(600)
    free = Forks(ForksSettings.practical(3, loss="squared")).predict_and_learn_many(X, 20 * y)
    kept = Forks(ForksSettings.practical(3, loss="squared", clip=5.0)).predict_and_learn_many(X, 20 * y)
    assert np.abs(free).max() > 10
    assert np.abs(kept).max() == 5.0


@pytest.mark.parametrize(
    ("preset", "changes", "message"),
    [
        ("paper", {}, "^clip = inf .* finite with loss = 'squared' and hessian = 'gradient'"),
        ("practical", {"hessian": "gradient"}, "^clip = inf .* finite"),
        ("practical", {"clip": -1.0}, "^clip = -1.0"),
    ],
)
def test_squared_loss_with_gradients_in_the_hessian_needs_bounded_scores(
    preset: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(ForksSettings, preset)(3, loss="squared", **changes)


def test_the_papers_algorithm_stays_within_its_bound() -> None:
    X, _, y = curved_stream(1500)
    settings = ForksSettings.paper(3, budget=50, loss="squared", clip=4.0, width=1.5)
    scores = Forks(settings).predict_and_learn_many(X, y)
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() <= 4.0
