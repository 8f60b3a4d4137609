from __future__ import annotations

import numpy as np

from forks.algorithm.moments import LIMIT, standardize, update_moments
from forks.arrays import FloatArray


def moments(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean, squares = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for count, x in enumerate(X, start=1):
        update_moments(x, count, mean, squares)
    return mean, squares


def standardized(x: FloatArray, X: FloatArray) -> FloatArray:
    out = np.empty(len(x))
    standardize(x, len(X), *moments(X), out)
    return out


def test_moments_are_those_of_all_vectors() -> None:
    X = np.random.default_rng(0).normal(1e6, [1.0, 20.0], size=(500, 2))
    mean, squares = moments(X)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(squares / 500, X.var(axis=0), rtol=1e-8)


def test_vectors_are_standardised_by_them() -> None:
    X = np.random.default_rng(1).normal(5, 3, size=(50, 2))
    np.testing.assert_allclose(standardized(X[0], X), (X[0] - X.mean(axis=0)) / X.std(axis=0), rtol=1e-12)


def test_a_column_that_does_not_vary_tells_nothing() -> None:
    X = np.full((10, 1), 0.1)
    assert standardized(np.array([7.0]), X) == 0.0
    assert standardized(np.array([7.0]), X[:1]) == 0.0
    assert standardized(np.array([7.0]), X[:0]) == 0.0


def test_rounding_is_not_variation() -> None:
    X = 1e9 + np.array([[0.0], [1e-7]])
    assert standardized(np.array([1e9 + 1.0]), X) == 0.0


def test_wild_values_are_limited() -> None:
    X = np.array([[0.0], [1.0]])
    assert standardized(np.array([1e9]), X) == LIMIT
    assert standardized(np.array([-1e9]), X) == -LIMIT
