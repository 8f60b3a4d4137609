from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forks.products import combine, dot


@given(st.integers(0, 20), st.integers(0, 40), st.integers(0, 2**32))
def test_combined_rows_are_the_product_with_the_bits_of_dot(count: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, rows, out = rng.normal(size=count), rng.normal(size=(count, columns)), np.full(columns, np.nan)
    combine(weights, rows, out)
    np.testing.assert_allclose(out, weights @ rows, rtol=1e-12, atol=1e-13)
    assert out.tolist() == [dot(weights, np.ascontiguousarray(column)) for column in rows.T]


def test_huge_and_tiny_numbers_are_added_in_order() -> None:
    assert dot(np.array([1e16, 1.0, -1e16, 1.0, 1.0]), np.ones(5)) == 2.0
