from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forks.algorithm.tisvd import truncated_svd
from forks.linalg.eigen import symmetric_eigen


def symmetric(rows: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    half = np.random.default_rng(0).normal(size=(rows, rows))
    return half + half.T


def gives_up(matrix: Any) -> Any:
    raise np.linalg.LinAlgError("Eigenvalues did not converge")


@pytest.mark.parametrize("fails", [False, True])
def test_a_matrix_is_made_of_its_eigenvectors(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if fails:
        monkeypatch.setattr(np.linalg, "eigh", gives_up)
    matrix = symmetric(12)
    values, vectors = symmetric_eigen(np.tril(matrix))  # only that is read
    assert (np.diff(values) > 0.0).all()
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(12), atol=1e-12)
    np.testing.assert_allclose(vectors * values @ vectors.T, matrix, atol=1e-12)


def test_a_sketch_is_decomposed_where_divide_and_conquer_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = symmetric(12)
    expected = truncated_svd(matrix, 4)
    monkeypatch.setattr(np.linalg, "eigh", gives_up)
    found = truncated_svd(matrix, 4)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-12)
    np.testing.assert_allclose(
        found.vectors * found.values @ found.vectors.T,
        expected.vectors * expected.values @ expected.vectors.T,
        atol=1e-12,
    )


def test_what_is_not_finite_has_no_eigenvectors() -> None:
    with pytest.raises(ValueError, match="infs or NaNs"):
        symmetric_eigen(np.full((3, 3), np.nan))
