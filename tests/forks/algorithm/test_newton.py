from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks.algorithm.newton import NewtonState, newton_step, project, project_and_step
from tests.support.examples import examples


def trained(seed: int, features: int) -> NewtonState:
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(features, features))
    return NewtonState(
        rng.normal(size=features), np.linalg.inv(half @ half.T + np.eye(features)).astype(np.float64)
    )


@examples(40)  # the first example may compile
@given(st.integers(0, 2**32), st.integers(1, 6), st.floats(1e-3, 10))
def test_steps_are_those_with_the_inverted_hessian(seed: int, features: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    newton = NewtonState.prior(features, alpha)
    A, w = alpha * np.eye(features), np.zeros(features)
    for _ in range(20):
        z, slope, curvature = rng.normal(size=features), rng.normal(), rng.uniform(0, 2)
        newton_step(newton, z, slope, curvature, np.empty(features))
        A += curvature * np.outer(z, z)
        w -= slope * np.linalg.solve(A, z)
    np.testing.assert_allclose(newton.inverse_hessian, np.linalg.inv(A), rtol=1e-6, atol=1e-9 / alpha)
    np.testing.assert_allclose(newton.weights, w, rtol=1e-6, atol=1e-6)


def test_the_inverse_hessian_stays_symmetric_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    newton = NewtonState.prior(7, 1.0)
    for _ in range(200):
        newton_step(newton, rng.normal(size=7), rng.normal(), rng.uniform(0, 2), np.empty(7))
    assert (newton.inverse_hessian == newton.inverse_hessian.T).all()


@given(st.integers(0, 2**32), st.floats(0.1, 10.0))
def test_projection_and_step_at_once_are_one_after_the_other(seed: int, clip: float) -> None:
    rng = np.random.default_rng(seed)
    newton, after = trained(seed, 5), trained(seed, 5)
    z, slope, curvature = rng.normal(size=5), rng.normal(), rng.uniform(0, 2)
    workspace, root = np.empty((2, 5))
    excess = float(newton.weights @ z) - project(after, z, clip, workspace)
    newton_step(after, z, slope, curvature, workspace)
    u = newton.inverse_hessian @ z
    project_and_step(newton.weights, z, u, excess, slope, curvature, root)
    np.testing.assert_allclose(newton.weights, after.weights, rtol=1e-9, atol=1e-9)
    lowered = newton.inverse_hessian - np.outer(root, root)
    np.testing.assert_allclose(lowered, after.inverse_hessian, rtol=1e-9, atol=1e-12)


def test_a_matrix_that_is_not_quite_positive_breaks_nothing() -> None:
    newton = NewtonState(np.ones(2), np.array([[1e-30, -1e-16], [-1e-16, 1e-30]]))
    newton_step(newton, np.array([1e10, 1e10]), 1.0, 1.0, np.empty(2))
    assert np.isfinite(newton.weights).all()
    assert np.isfinite(newton.inverse_hessian).all()


@given(st.integers(0, 2**32))
def test_projection_is_the_nearest_weights_with_a_clipped_score(seed: int) -> None:
    newton = trained(seed, 4)
    z = np.random.default_rng(seed + 1).normal(size=4)
    before = newton.weights.copy()
    score = project(newton, z, 0.5, np.empty(4))
    assert abs(score) <= 0.5
    assert newton.weights @ z == pytest.approx(score, abs=1e-9)
    assert score == pytest.approx(np.clip(before @ z, -0.5, 0.5))
    # The nearest point of a half space lies along A^-1 z.
    moved, direction = before - newton.weights, newton.inverse_hessian @ z
    np.testing.assert_allclose(moved, direction * (moved @ z) / (direction @ z), atol=1e-9)


def test_projection_leaves_weights_alone_whose_score_is_within_bounds() -> None:
    newton = trained(3, 4)
    before = newton.weights.copy()
    project(newton, np.ones(4), 1e6, np.empty(4))
    assert (newton.weights == before).all()
