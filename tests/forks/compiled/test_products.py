from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forks.arrays import FloatArray
from forks.compiled.alignment import aligned_rows
from forks.compiled.products import dot, downdate_and_vecmat, matmul, rank_one_downdate, vecmat
from tests.forks.compiled.test_simd import fused
from tests.support.examples import examples

seeds = st.integers(0, 2**32)


def sequential(u: FloatArray, v: FloatArray, total: float = 0.0) -> float:
    """The sum of the products from first to last, each added with one rounding."""
    for a, b in zip(u, v, strict=True):
        total = fused(a, b, total)
    return total


@given(st.integers(0, 40), seeds)
def test_a_dot_product_is_a_vector_of_sums_and_the_remainder(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    u, v = rng.normal(size=n), rng.normal(size=n)
    whole = n - n % 8
    sums = np.array([sequential(u[i:whole:8], v[i:whole:8]) for i in range(8)])
    for half, _ in pairwise((4, 2, 1, 0)):
        sums = sums[:half] + sums[half:]
    assert dot(u, v) == sequential(u[whole:], v[whole:], sums[0])
    np.testing.assert_allclose(dot(u, v), u @ v, rtol=1e-12, atol=1e-13)


def test_what_is_filled_up_with_zeros_does_not_count() -> None:
    rng = np.random.default_rng(0)
    u, v = np.zeros((2, 16))
    u[:11], v[:11] = rng.normal(size=(2, 11))
    np.testing.assert_allclose(dot(u, v), dot(u[:11], v[:11]), rtol=1e-14)


@examples(40)
@given(st.integers(0, 20), st.integers(0, 20), seeds)
def test_combined_rows_are_summed_from_first_to_last(count: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, rows, out = rng.normal(size=count), rng.normal(size=(count, columns)), np.full(columns, np.nan)
    vecmat(weights, rows, out)
    assert out.tolist() == [sequential(weights, column) for column in rows.T]


@given(st.integers(0, 22), st.integers(0, 20), st.integers(1, 40), seeds)
def test_each_of_several_has_the_bits_that_it_has_alone(count: int, n: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, rows = rng.normal(size=(count, n + 3)), aligned_rows(rng.normal(size=(n, columns)))
    out, alone = np.full((count, rows.shape[1]), np.nan), np.empty(rows.shape[1])
    matmul(weights, rows, out)
    for i in range(count):
        vecmat(weights[i, :n], rows, alone)
        assert (out[i] == alone).all()


@given(st.integers(1, 30), seeds)
def test_lowering_a_symmetric_matrix_keeps_it_symmetric_to_the_bit(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=n)
    matrix = rng.normal(size=(n, n))
    matrix += matrix.T
    expected = matrix - np.outer(root, root)
    rank_one_downdate(matrix, root)
    assert (matrix == matrix.T).all()
    np.testing.assert_allclose(matrix, expected, rtol=1e-12, atol=1e-14)


@given(st.integers(0, 20), st.integers(1, 40), seeds)
def test_lowering_and_combining_at_once_has_the_bits_of_both(n: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = aligned_rows(rng.normal(size=(n, max(n, columns))))
    root, weights = rng.normal(size=(matrix.shape[1],)), rng.normal(size=n)
    expected, out, expected_out = matrix.copy(), np.full_like(root, np.nan), np.empty_like(root)
    rank_one_downdate(expected, root)
    vecmat(weights, expected, expected_out)
    downdate_and_vecmat(matrix, root, weights, out)
    assert (matrix == expected).all()
    assert (out == expected_out).all()
