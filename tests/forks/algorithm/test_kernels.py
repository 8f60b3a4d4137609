from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forks.algorithm.kernels import (
    factorised_matrix,
    gaussian_matrix,
    gaussian_row,
    linear_matrix,
    polynomial_matrix,
    precision,
    squared_distance_matrix,
    squared_distances,
)
from forks.compiled.alignment import aligned_rows


def test_gaussian_matrix_is_the_formula() -> None:
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    squared_distances = np.linalg.norm(left[:, None] - right[None], axis=2)
    expected = np.exp(-(squared_distances**2) / (2 * 1.7**2))
    np.testing.assert_allclose(gaussian_matrix(left, right, precision(1.7)), expected, rtol=1e-13)


def test_a_point_has_kernel_one_with_itself_and_the_matrix_is_symmetric_to_the_bit() -> None:
    points = np.random.default_rng(2).normal(size=(9, 4))
    kernel = gaussian_matrix(points, points, precision(2.0))
    assert (np.diag(kernel) == 1.0).all()
    assert (kernel == kernel.T).all()


@given(count=st.integers(1, 40), dimension=st.integers(1, 9), seed=st.integers(0, 1000))
def test_a_row_has_the_bits_of_the_matrix(count: int, dimension: int, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(count, dimension))
    row = np.empty(count)
    gaussian_row(points[0], np.ascontiguousarray(points.T), precision(0.3), row)
    assert (row == gaussian_matrix(points, points, precision(0.3))[0]).all()


@given(count=st.integers(0, 11), n=st.integers(1, 30), dimension=st.integers(1, 9), seed=st.integers(0, 1000))
def test_distances_of_several_have_the_bits_of_one_alone(
    count: int, n: int, dimension: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X, columns = rng.normal(size=(count, dimension)), aligned_rows(rng.normal(size=(dimension, n)))
    out, alone = np.full((count, columns.shape[1]), np.nan), np.empty(columns.shape[1])
    squared_distance_matrix(X, columns, out)
    for i in range(count):
        squared_distances(X[i], columns, alone)
        assert (out[i] == alone).all()
        np.testing.assert_allclose(alone, ((columns - X[i][:, None]) ** 2).sum(axis=0), rtol=1e-12)


def test_linear_and_polynomial_matrices_are_the_formulas() -> None:
    rng = np.random.default_rng(4)
    left, right = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    products = left @ right.T
    np.testing.assert_allclose(linear_matrix(left, right), products, rtol=1e-12, atol=1e-15)
    for degree in (1, 2, 3):
        np.testing.assert_allclose(
            polynomial_matrix(left, right, degree, 1.5), (products + 1.5) ** degree, rtol=1e-12, atol=1e-15
        )


def test_it_does_not_matter_how_points_lie_in_memory() -> None:
    rng = np.random.default_rng(6)
    left, right = rng.normal(size=(4, 9)), rng.normal(size=(3, 9))
    other, apart = np.asfortranarray(left), np.repeat(right, 2, axis=0)[::2]
    assert (linear_matrix(other, apart) == linear_matrix(left, right)).all()
    assert (polynomial_matrix(other, apart, 2, 1.5) == polynomial_matrix(left, right, 2, 1.5)).all()
    assert (gaussian_matrix(other, apart, 0.3) == gaussian_matrix(left, right, 0.3)).all()


def test_linear_and_polynomial_matrices_are_positive_semidefinite() -> None:
    points = np.random.default_rng(5).normal(size=(12, 4))
    for kernel in (linear_matrix(points, points), polynomial_matrix(points, points, 2, 1.0)):
        assert (kernel == kernel.T).all()
        assert np.linalg.eigvalsh(kernel).min() > -1e-9


@given(
    columns=st.integers(1, 30),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    width=st.floats(0.5, 100.0),
    seed=st.integers(0, 1000),
)
def test_the_product_over_any_blocks_is_the_plain_gaussian(
    columns: int, cuts: list[int], width: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(4, columns)), rng.normal(size=(3, columns))
    edges = np.array([0, *sorted(min(cut, columns) for cut in cuts), columns])
    np.testing.assert_allclose(
        factorised_matrix(left, right, edges, precision(width)),
        gaussian_matrix(left, right, precision(width)),
        rtol=1e-12,
    )
