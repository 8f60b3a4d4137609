"""Variances of scores: z' A^-1 z, held to dense sums over the state of the learner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forks import Forks, ForksSettings
from forks.algorithm.kernels import gaussian_matrix, precision
from forks.algorithm.sketched_kernel import SketchedKernel
from forks.arrays import FloatArray
from forks.state import StateReader

DIMENSION = 4
CASES: dict[str, ForksSettings] = {
    "practical": ForksSettings.practical(DIMENSION, budget=40, cycle=20),
    "paper": ForksSettings.paper(DIMENSION, budget=40, width=2.0, cycle=20),
    "squared": ForksSettings.practical(DIMENSION, budget=40, loss="squared", cycle=20),
    "columns": ForksSettings.practical(
        DIMENSION, budget=40, cycle=20, linear_columns=(1, 4), kernel_columns=(0, 3), entity_blocks=((0, 1),)
    ),
}


def learned(settings: ForksSettings, count: int) -> tuple[Forks, FloatArray]:
    """Return a learner that has learned so many events, and 70 others, more than two tiles of them."""
    chance = np.random.default_rng(3)
    X = chance.normal(size=(count + 70, DIMENSION))
    learner = Forks(settings)
    learner.learn_many(X[:count], np.where(X[:count, 0] > X[:count, 1], 1.0, -1.0))
    return learner, X[count:]


def dense_variances(learner: Forks, X: FloatArray) -> FloatArray:
    """Compute the variances from the whole features of each row."""
    settings, state = learner.settings, dict(learner.state())
    entries: dict[str, Any] = state
    inputs = X.copy()
    if settings.standardize and state["updates"]:
        varying = slice(settings.entity_stop, None)
        deviation = np.sqrt(entries["squares"][varying] / entries["updates"])
        inputs[:, varying] = (X[:, varying] - entries["mean"][varying]) / deviation
    linear = np.empty((len(X), 0))
    if settings.sum_kernel:
        linear = np.column_stack([np.ones(len(X)), inputs[:, slice(*settings.linear_columns)]])
    phi, prior = np.zeros((len(X), settings.rank)), 1.0 / settings.alpha
    if state["stage"] == 2:
        feature_map, prior = SketchedKernel.from_state(settings, StateReader(state)).feature_map, 0.0
        points = inputs[:, slice(*settings.kernel_columns)]
        phi = gaussian_matrix(points, feature_map.landmarks.T, precision(settings.width)) @ feature_map.Z
    z = np.column_stack([linear, phi])
    variances: FloatArray = np.einsum("ij,jk,ik->i", z, entries["inverse_hessian"], z) + prior
    return variances


@pytest.mark.parametrize("count", [25, 400])
@pytest.mark.parametrize("name", CASES)
def test_variances_are_those_of_dense_sums(name: str, count: int) -> None:
    learner, X = learned(CASES[name], count)
    assert learner.health().stage == (1 if count == 25 else 2)
    np.testing.assert_allclose(learner.variances(X), dense_variances(learner, X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_before_the_first_event_variances_are_those_of_the_prior(name: str) -> None:
    learner, X = learned(CASES[name], 0)
    settings = CASES[name]
    expected = np.full(len(X), 1.0 / settings.alpha)
    if settings.sum_kernel:
        expected += (
            1.0 + (X[:, slice(*settings.linear_columns)] ** 2).sum(axis=1)
        ) / settings.linear_precision
    if settings.standardize:  # all columns count as 0 before the first event
        expected = np.full(len(X), 1.0 / settings.alpha + 1.0 / settings.linear_precision)
    np.testing.assert_allclose(learner.variances(X), expected, rtol=1e-12)


@pytest.mark.parametrize("count", [25, 400])
@pytest.mark.parametrize("name", CASES)
def test_a_row_has_the_same_bits_alone_and_nothing_changes(name: str, count: int) -> None:
    learner, X = learned(CASES[name], count)
    before, scores = learner.state(), learner.predict_many(X)
    together = learner.variances(X)
    assert together.tolist() == [float(learner.variances(x[None])[0]) for x in X]
    assert learner.predict_many(X).tolist() == scores.tolist()
    assert all(np.array_equal(value, before[key]) for key, value in learner.state().items())
    assert learner.variances(np.empty((0, DIMENSION))).shape == (0,)


def test_learning_the_same_event_makes_its_variance_smaller() -> None:
    learner, X = learned(CASES["practical"], 400)
    before = learner.variances(X[:1])
    learner.learn_many(np.repeat(X[:1], 5, axis=0), np.ones(5))
    assert learner.variances(X[:1]) < before


def test_what_cannot_be_predicted_has_no_variance() -> None:
    with pytest.raises(ValueError, match="X"):
        Forks(CASES["practical"]).variances([[1.0, np.nan, 0.0, 0.0]])
