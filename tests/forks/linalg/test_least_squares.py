from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import assume, given
from hypothesis import strategies as st

from forks.arrays import FloatArray
from forks.linalg.least_squares import least_squares, plain_least_squares
from tests.support import plain_decompositions
from tests.support.examples import examples
from tests.support.matrices import orthogonal, rectangular_matrices

ULP = 2.0**-52


def with_singular_values(rng: np.random.Generator, rows: int, values: list[float]) -> FloatArray:
    left, right = orthogonal(rng, rows)[:, : len(values)], orthogonal(rng, len(values))
    matrix: FloatArray = (left * values) @ right.T
    return matrix


@examples(300)
@given(rectangular_matrices(), st.integers(1, 4), st.integers(0, 2**32))
def test_it_is_the_solution_that_the_singular_values_give(A: FloatArray, c: int, seed: int) -> None:
    size = np.abs(A).max() or 1.0
    values = scipy.linalg.svdvals(A / size)
    near = (values > 1e-8 * values[0] / 50) & (values < 1e-8 * values[0] * 50)
    assume(not near.any())  # estimates are good to a factor
    B = np.random.default_rng(seed).normal(size=(len(A), c))
    X = least_squares(A, B, 1e-8) * size
    expected = scipy.linalg.pinv(A / size, rtol=1e-8) @ B
    kept = values[values > 1e-8 * values[0]]
    cut = values[len(kept)] / kept[-1] if 0 < len(kept) < len(values) else 0.0
    condition = values[0] / kept[-1] if len(kept) and values[0] else 1.0
    bound = 100 * max(A.shape) * ULP * condition**2 + 4 * cut * condition
    assert np.linalg.norm(X - expected) <= bound * max(np.linalg.norm(expected), np.linalg.norm(B))
    assert X.flags.c_contiguous


@examples(150)
@given(
    rectangular_matrices(),
    st.integers(1, 3),
    st.sampled_from([1e-12, 1e-6, 1e-3, 0.5]),
    st.integers(0, 2**32),
)
def test_it_has_the_bits_of_plain_python(A: FloatArray, c: int, cutoff: float, seed: int) -> None:
    B = np.random.default_rng(seed).normal(size=(len(A), c))
    assert (least_squares(A, B, cutoff) == plain_decompositions.least_squares(A, B, cutoff)).all()


def test_the_system_of_a_feature_map_is_solved_as_by_lapack() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(160, 3))
    kernel = np.exp(-np.square(points[:, None] - points[:80]).sum(axis=2) / 8)
    A, B = rng.normal(size=(160, 160)) @ kernel, rng.normal(size=(160, 48))
    X = least_squares(A, B, 1e-6)
    expected, _, rank, _ = scipy.linalg.lstsq(A, B, cond=1e-6, lapack_driver="gelsy")
    assert 10 < rank < 80
    np.testing.assert_allclose(np.linalg.norm(A @ X - B), np.linalg.norm(A @ expected - B), rtol=1e-12)
    np.testing.assert_allclose(X, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("A", "B", "expected"),
    [
        (np.zeros((2, 2)), np.ones((2, 1)), [[0.0], [0.0]]),
        (np.eye(2), np.zeros((2, 1)), [[0.0], [0.0]]),
        (np.diag([2.0**-1000, 2.0**-1001]), np.ones((2, 1)) * 2.0**-1000, [[1.0], [2.0]]),
        (np.diag([2.0**1000, 2.0**999]), np.ones((2, 1)) * 2.0**1000, [[1.0], [2.0]]),
        (np.eye(2), np.full((2, 1), 2.0**-1060), [[2.0**-1060], [2.0**-1060]]),
    ],
)
def test_zeros_and_huge_and_tiny_numbers(A: FloatArray, B: FloatArray, expected: list[list[float]]) -> None:
    assert least_squares(A, B, 1e-6).tolist() == expected


@pytest.mark.parametrize("solve", [least_squares, plain_least_squares])
def test_what_is_below_the_cutoff_counts_as_zero(solve: object) -> None:
    assert callable(solve)
    rng = np.random.default_rng(0)
    A = with_singular_values(rng, 12, [1.0, 0.5, 0.2, 1e-9, 1e-10])
    B = rng.normal(size=(12, 3))
    np.testing.assert_allclose(solve(A, B, 1e-3), np.linalg.pinv(A, rcond=1e-3) @ B, atol=1e-6)


@given(st.integers(0, 2**32))
def test_the_plain_way_is_the_same_where_all_is_far_above_the_cutoff(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = with_singular_values(rng, 20, [3.0, 1.0, 0.1, 0.03]), rng.normal(size=(20, 4))
    X = plain_least_squares(A, B, 1e-3)
    np.testing.assert_allclose(X, np.linalg.pinv(A) @ B, rtol=1e-9, atol=1e-9)
    assert X.flags.c_contiguous


@given(st.floats(1e-12, 3e-4), st.integers(0, 2**32))
def test_the_plain_way_is_left_where_something_is_below_the_cutoff(least: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = with_singular_values(rng, 20, [1.0, 0.9, 0.8, least]), rng.normal(size=(20, 4))
    assert (plain_least_squares(A, B, 1e-3) == least_squares(A, B, 1e-3)).all()


def test_nothing_is_learned_from_zeros() -> None:
    assert not plain_least_squares(np.zeros((5, 2)), np.ones((5, 1)), 1e-3).any()


def test_what_is_given_stays() -> None:
    rng = np.random.default_rng(0)
    A, B = np.asfortranarray(rng.normal(size=(5, 3))), np.asfortranarray(rng.normal(size=(5, 2)))
    before = A.copy(), B.copy()
    least_squares(A, B, 1e-6)
    plain_least_squares(A, B, 1e-3)
    assert (before[0] == A).all()
    assert (before[1] == B).all()
