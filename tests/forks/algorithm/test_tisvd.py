from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import svdvals

from forks.algorithm.tisvd import Factors, tisvd, truncated_svd
from forks.arrays import FloatArray


def product(factors: Factors) -> FloatArray:
    return (factors.vectors * factors.values) @ factors.vectors.T


def best(matrix: FloatArray, rank: int) -> FloatArray:
    """The best approximation of that rank, by the singular value decomposition of any matrix."""
    left, singular_values, right = np.linalg.svd(matrix)
    approximation: FloatArray = (left[:, :rank] * singular_values[:rank]) @ right[:rank]
    return approximation


def assert_orthonormal(basis: FloatArray) -> None:
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)


def symmetric(rng: np.random.Generator, rows: int) -> FloatArray:
    half = rng.normal(size=(rows, rows))
    return half + half.T


def modification(rng: np.random.Generator, rows: int) -> tuple[FloatArray, FloatArray]:
    """A change as a new point makes it: three columns of rank two, symmetric (Eq. 12)."""
    s, q = rng.normal(size=(2, rows))
    return np.column_stack([s, q, s]), np.column_stack([q, s, s])


def test_at_full_rank_it_is_the_svd_of_the_changed_matrix() -> None:
    rng = np.random.default_rng(0)
    matrix = symmetric(rng, 9)
    factors = truncated_svd(matrix, 9)
    for _ in range(20):
        A, B = modification(rng, 9)
        matrix = matrix + A @ B.T
        factors = tisvd(factors, A, B)
    np.testing.assert_allclose(product(factors), matrix, atol=1e-10)
    np.testing.assert_allclose(np.abs(factors.values), svdvals(matrix), atol=1e-10)


@pytest.mark.parametrize("rank", [1, 4, 9])
def test_a_decomposition_is_the_best_of_its_rank(rank: int) -> None:
    rng = np.random.default_rng(6)
    half = rng.normal(size=(9, 9))
    for matrix in (symmetric(rng, 9), half @ half.T, np.zeros((9, 9)), np.ones((9, 9))):
        factors = truncated_svd(matrix, rank)
        np.testing.assert_allclose(product(factors), best(matrix, rank), atol=1e-12)
        np.testing.assert_allclose(np.abs(factors.values), svdvals(matrix)[:rank], atol=1e-12)
        assert_orthonormal(factors.vectors)


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 5))
def test_a_step_is_the_best_approximation_of_what_was_kept_plus_the_change(
    seed: int, rank: int, columns: int
) -> None:
    rng = np.random.default_rng(seed)
    factors = truncated_svd(symmetric(rng, 12), rank)
    A = rng.normal(size=(12, columns))
    B = A @ symmetric(rng, columns)
    changed = product(factors) + A @ B.T
    stepped = tisvd(factors, A, B)
    np.testing.assert_allclose(product(stepped), best(changed, rank), atol=1e-9)
    assert_orthonormal(stepped.vectors)


def test_its_error_is_at_most_the_best_rank_k_error_plus_what_was_cut_on_the_way() -> None:
    rng = np.random.default_rng(3)
    scale = np.logspace(0, -4, 30)
    matrix = scale[:, None] * symmetric(rng, 30) * scale
    factors = truncated_svd(matrix, 10)
    cut = np.linalg.norm(matrix - product(factors))
    for _ in range(15):
        A, B = modification(rng, 30)
        matrix = matrix + A @ B.T
        kept = product(factors) + A @ B.T
        factors = tisvd(factors, A, B)
        cut += np.linalg.norm(kept - product(factors))
    error = np.linalg.norm(matrix - product(factors))
    least = np.linalg.norm(svdvals(matrix)[10:])
    assert least - 1e-9 <= error <= least + cut + 1e-9


@pytest.mark.parametrize("kind", ["zero", "in the span", "nearly in the span", "repeated"])
def test_deficient_changes_leave_the_basis_orthonormal(kind: str) -> None:
    rng = np.random.default_rng(4)
    factors = truncated_svd(symmetric(rng, 12), 5)
    column = rng.normal(size=12)
    A = {
        "zero": np.zeros((12, 3)),
        "in the span": factors.vectors @ rng.normal(size=(5, 3)),
        "nearly in the span": factors.vectors @ rng.normal(size=(5, 3)) + 1e-13 * rng.normal(size=(12, 3)),
        "repeated": np.column_stack([column, column, column]),
    }[kind]
    stepped = tisvd(factors, A, A)
    np.testing.assert_allclose(product(stepped), best(product(factors) + A @ A.T, 5), atol=1e-9)
    assert_orthonormal(stepped.vectors)


def test_what_an_undone_change_had_in_its_columns_does_not_show() -> None:
    rng = np.random.default_rng(7)
    factors = truncated_svd(symmetric(rng, 12), 6)
    s, q = rng.normal(size=(2, 12))
    # A B' = 0, and q lies neither in the span of A nor in that of the basis.
    stepped = tisvd(factors, np.column_stack([s, -s]), np.column_stack([q, q]))
    np.testing.assert_allclose(product(stepped), product(factors), atol=1e-12)


def test_factors_are_contiguous_so_that_a_restored_copy_takes_the_same_path() -> None:
    rng = np.random.default_rng(5)
    factors = tisvd(truncated_svd(symmetric(rng, 8), 3), *modification(rng, 8))
    assert all(part.flags.c_contiguous for part in factors)
