from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import svdvals

from forks.arrays import FloatArray
from forks.tisvd import Factors, tisvd, truncated_svd, truncated_symmetric_svd


def product(factors: Factors) -> FloatArray:
    return (factors.left * factors.singular_values) @ factors.right.T


def assert_orthonormal(basis: FloatArray) -> None:
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)


def modification(rng: np.random.Generator, rows: int) -> tuple[FloatArray, FloatArray]:
    """A change as a new point makes it: three columns of rank two, symmetric (Eq. 12)."""
    s, q = rng.normal(size=(2, rows))
    return np.column_stack([s, q, s]), np.column_stack([q, s, s])


def test_at_full_rank_it_is_the_svd_of_the_changed_matrix() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(9, 9))
    factors = truncated_svd(matrix, 9)
    for _ in range(20):
        A, B = modification(rng, 9)
        matrix = matrix + A @ B.T
        factors = tisvd(factors, A, B)
    np.testing.assert_allclose(product(factors), matrix, atol=1e-10)
    np.testing.assert_allclose(factors.singular_values, svdvals(matrix), atol=1e-10)


@pytest.mark.parametrize("rank", [1, 4, 9])
def test_the_svd_of_a_symmetric_matrix_is_the_svd(rank: int) -> None:
    half = np.random.default_rng(6).normal(size=(9, 9))
    for matrix in (half + half.T, half @ half.T, np.zeros((9, 9)), np.ones((9, 9))):
        factors, expected = truncated_symmetric_svd(matrix, rank), truncated_svd(matrix, rank)
        np.testing.assert_allclose(product(factors), product(expected), atol=1e-12)
        np.testing.assert_allclose(factors.singular_values, expected.singular_values, atol=1e-12)
        assert (factors.singular_values >= 0).all()
        assert_orthonormal(factors.left)
        assert_orthonormal(factors.right)
        assert all(part.flags.c_contiguous for part in factors)


@settings(max_examples=50)  # LAPACK's threads may have to wait
@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 5))
def test_a_step_is_the_best_approximation_of_what_was_kept_plus_the_change(
    seed: int, rank: int, columns: int
) -> None:
    rng = np.random.default_rng(seed)
    factors = truncated_svd(rng.normal(size=(12, 10)), rank)
    A, B = rng.normal(size=(12, columns)), rng.normal(size=(10, columns))
    changed = product(factors) + A @ B.T
    stepped = tisvd(factors, A, B)
    np.testing.assert_allclose(product(stepped), product(truncated_svd(changed, rank)), atol=1e-9)
    assert_orthonormal(stepped.left)
    assert_orthonormal(stepped.right)


def test_its_error_is_at_most_the_best_rank_k_error_plus_what_was_cut_on_the_way() -> None:
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(30, 30)) * np.logspace(0, -4, 30)
    factors = truncated_svd(matrix, 10)
    cut = np.linalg.norm(matrix - product(factors))
    for _ in range(15):
        A, B = modification(rng, 30)
        matrix = matrix + A @ B.T
        kept = product(factors) + A @ B.T
        factors = tisvd(factors, A, B)
        cut += np.linalg.norm(kept - product(factors))
    error = np.linalg.norm(matrix - product(factors))
    best = np.linalg.norm(svdvals(matrix)[10:])
    assert best - 1e-9 <= error <= best + cut + 1e-9


@pytest.mark.parametrize("kind", ["zero", "in the span", "nearly in the span", "repeated"])
def test_deficient_changes_leave_the_bases_orthonormal(kind: str) -> None:
    rng = np.random.default_rng(4)
    factors = truncated_svd(rng.normal(size=(12, 12)), 5)
    column = rng.normal(size=12)
    A = {
        "zero": np.zeros((12, 3)),
        "in the span": factors.left @ rng.normal(size=(5, 3)),
        "nearly in the span": factors.left @ rng.normal(size=(5, 3)) + 1e-13 * rng.normal(size=(12, 3)),
        "repeated": np.column_stack([column, column, column]),
    }[kind]
    stepped = tisvd(factors, A, A)
    np.testing.assert_allclose(
        product(stepped), product(truncated_svd(product(factors) + A @ A.T, 5)), atol=1e-9
    )
    assert_orthonormal(stepped.left)
    assert_orthonormal(stepped.right)


def test_factors_are_contiguous_so_that_a_restored_copy_takes_the_same_path() -> None:
    rng = np.random.default_rng(5)
    factors = tisvd(truncated_svd(rng.normal(size=(8, 8)), 3), *modification(rng, 8))
    assert all(part.flags.c_contiguous for part in factors)
