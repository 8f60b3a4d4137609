from __future__ import annotations

import numpy as np
import pytest

from forks.linalg.products import product
from forks.linalg.vectors import dot, norm, padded, power_of_two_near
from tests.support import plain_decompositions


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2), (9, 17, 8), (48, 160, 49)])
def test_a_product_of_matrices_in_any_layout(shape: tuple[int, int, int]) -> None:
    m, n, c = shape
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(n, m)).T, rng.normal(size=(c, n)).T
    found = product(A, B)
    np.testing.assert_allclose(found, A @ B, rtol=0, atol=1e-13)
    assert found.flags.c_contiguous
    assert (found == product(np.ascontiguousarray(A), np.ascontiguousarray(B))).all()


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (0, 8), (0, 40), (3, 30), (5, 9)])
def test_sums_have_the_order_of_the_plain_ones(start: int, stop: int) -> None:
    u, v = np.random.default_rng(0).normal(size=(2, 40))
    assert dot(u, v, start, stop) == plain_decompositions.dot(u.tolist(), v.tolist(), start, stop)


@pytest.mark.parametrize("largest", [5e-324, 1e-310, 2.0**-1022, 0.1, 1.0, 3.0, 1.7e308])
def test_a_scale_is_a_power_of_two_within_the_largest_number(largest: float) -> None:
    scale = power_of_two_near(np.array([[-largest, 0.0]]))
    assert scale == plain_decompositions.scale_of(np.array([[largest]]))
    assert 1.0 <= largest / scale < 2.0


def test_a_norm_is_that_of_all_entries() -> None:
    assert norm(np.asfortranarray([[1.0, 2.0], [2.0, 4.0]])) == 5.0
    assert padded(np.ones((1, 8)), 8).shape == (1, 8)
