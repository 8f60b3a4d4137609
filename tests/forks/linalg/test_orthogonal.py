from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forks.linalg.orthogonal import outside
from tests.support.examples import examples
from tests.support.matrices import orthogonal, rectangular_matrices


@examples(200)
@given(rectangular_matrices(12), st.integers(0, 6), st.floats(0.0, 1.0), st.integers(0, 2**32))
def test_it_spans_with_the_basis_what_the_columns_do_and_is_orthonormal(
    columns: np.ndarray[tuple[int, int], np.dtype[np.float64]], k: int, inside: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    columns = columns / (np.abs(columns).max() or 1.0)
    n, c = columns.shape
    basis = orthogonal(rng, n)[:, : min(k, n)]
    columns = (1.0 - inside) * columns + inside * basis @ rng.normal(size=(basis.shape[1], c))
    found = outside(basis, columns)
    whole = np.concatenate([basis, found], axis=1)
    assert whole.shape[1] <= n
    np.testing.assert_allclose(whole.T @ whole, np.eye(whole.shape[1]), rtol=0, atol=1e-13)
    rest = columns - whole @ (whole.T @ columns)
    assert np.linalg.norm(rest) <= 4 * max(n, c) ** 1.5 * 2.0**-52 * np.linalg.norm(columns)
