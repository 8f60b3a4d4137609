from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from forks.linalg.cholesky import cholesky, solve_factored
from tests.support.matrices import orthogonal


@given(st.integers(1, 30), st.integers(1, 5), st.integers(0, 2**32))
def test_it_factors_and_solves_as_lapack_does(n: int, c: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    basis = orthogonal(rng, n)
    matrix = (basis * np.logspace(0, -4, n)) @ basis.T
    R, whole = cholesky(matrix, 1e-6)
    assert whole
    np.testing.assert_allclose(R, scipy.linalg.cholesky(matrix), rtol=1e-9, atol=1e-12)
    B = rng.normal(size=(n, c))
    np.testing.assert_allclose(solve_factored(R, B), np.linalg.solve(matrix, B), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("values", [[1.0, 0.0], [1.0, -1.0], [1.0, 1e-8], [0.0, 1.0], [np.nan, 1.0]])
def test_what_is_not_positive_definite_or_beyond_the_cutoff_has_no_factor(values: list[float]) -> None:
    assert not cholesky(np.diag(values), 1e-3)[1]


def test_a_matrix_may_be_just_within_the_cutoff() -> None:
    assert cholesky(np.diag([1.0, 2e-6]), 1e-3)[1]
