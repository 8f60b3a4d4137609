from __future__ import annotations

import numpy as np

from forks.kernels import gaussian_matrix, gaussian_row, precision


def test_gaussian_matrix_is_the_formula() -> None:
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    distances = np.linalg.norm(left[:, None] - right[None], axis=2)
    expected = np.exp(-(distances**2) / (2 * 1.7**2))
    np.testing.assert_allclose(gaussian_matrix(left, right, precision(1.7)), expected, rtol=1e-13)


def test_a_point_has_kernel_one_with_itself_and_the_matrix_is_symmetric_to_the_bit() -> None:
    points = np.random.default_rng(2).normal(size=(9, 4))
    kernel = gaussian_matrix(points, points, precision(2.0))
    assert (np.diag(kernel) == 1.0).all()
    assert (kernel == kernel.T).all()


def test_a_row_has_the_bits_of_the_matrix() -> None:
    points = np.random.default_rng(3).normal(size=(9, 4))
    row = np.empty(9)
    gaussian_row(points[4], points, precision(0.3), row)
    assert (row == gaussian_matrix(points, points, precision(0.3))[4]).all()
