from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given

from forks.arrays import FloatArray
from forks.linalg import eigen
from forks.linalg.eigen import symmetric_eigen
from tests.support import plain_decompositions
from tests.support.examples import examples
from tests.support.matrices import symmetric_matrices

ULP = 2.0**-52


@examples(300)
@given(symmetric_matrices())
def test_it_is_as_exact_as_its_docstring_says_and_agrees_with_lapack(matrix: FloatArray) -> None:
    values, vectors = symmetric_eigen(matrix)
    n, size = len(matrix), np.abs(matrix).max() or 1.0
    scaled, own = matrix / size, values / size  # no overflow in norms
    norm = float(np.linalg.norm(scaled, 2))
    assert (np.diff(values) >= 0.0).all()
    assert np.linalg.norm(vectors * own @ vectors.T - scaled, 2) <= 4 * n * ULP * norm
    assert np.linalg.norm(vectors.T @ vectors - np.eye(n), 2) <= 4 * n * ULP
    np.testing.assert_allclose(own, scipy.linalg.eigvalsh(scaled), rtol=0, atol=8 * n * ULP * norm)


@pytest.mark.parametrize("n", [48, 61, 160])
def test_matrices_as_large_as_those_of_a_learner_are_as_exact(n: int) -> None:
    rng = np.random.default_rng(n)
    points = rng.normal(size=(n, 4))
    for matrix in (rng.normal(size=(n, n)), np.exp(-np.square(points[:, None] - points).sum(axis=2) / 8)):
        whole = np.tril(matrix) + np.tril(matrix, -1).T
        values, vectors = symmetric_eigen(matrix)  # only the lower triangle is read
        bound = 4 * n * ULP * np.linalg.norm(whole, 2)
        assert np.linalg.norm(vectors * values @ vectors.T - whole, 2) <= bound
        assert np.linalg.norm(vectors.T @ vectors - np.eye(n), 2) <= 4 * n * ULP


@examples(100)
@given(symmetric_matrices())
def test_it_has_the_bits_of_plain_python(matrix: FloatArray) -> None:
    for found, expected in zip(
        symmetric_eigen(matrix), plain_decompositions.symmetric_eigen(matrix), strict=True
    ):
        assert (found == expected).all()


@pytest.mark.parametrize("rows", [0, 1])
def test_the_smallest_matrices(rows: int) -> None:
    values, vectors = symmetric_eigen(np.full((rows, rows), -2.0))
    assert values.tolist() == [-2.0] * rows
    assert np.abs(vectors).tolist() == [[1.0]] * rows


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_has_no_eigenvectors(bad: float) -> None:
    with pytest.raises(ValueError, match="infs or NaNs"):
        symmetric_eigen(np.full((3, 3), bad))


def test_an_iteration_that_does_not_end_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eigen, "_diagonalize", lambda *_: False)
    with pytest.raises(ArithmeticError, match="sweeps"):
        symmetric_eigen(np.eye(3))


def test_what_is_given_stays() -> None:
    matrix = np.asfortranarray(np.diag([2.0, 1.0]))
    symmetric_eigen(matrix)
    assert matrix.tolist() == [[2.0, 0.0], [0.0, 1.0]]
