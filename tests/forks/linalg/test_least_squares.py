from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg.lapack import dgelsy, dgeqp3

from forks.arrays import FloatArray
from forks.linalg.blas import on_one_thread
from forks.linalg.least_squares import least_squares, plain_least_squares
from forks.linalg.rank import UNSURE, numerical_rank
from tests.support.examples import examples


def with_singular_values(rng: np.random.Generator, rows: int, values: list[float]) -> FloatArray:
    left, right = (np.linalg.qr(rng.normal(size=(n, len(values))))[0] for n in (rows, len(values)))
    matrix: FloatArray = (left * values) @ right.T
    return matrix


@examples(50)  # LAPACK's threads may have to wait
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**32))
def test_it_is_the_pseudo_inverse_of_any_matrix(rows: int, columns: int, c: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(rows, columns)), rng.normal(size=(rows, c))
    X = least_squares(A, B, 1e-12)
    np.testing.assert_allclose(X, np.linalg.pinv(A) @ B, rtol=1e-6, atol=1e-9 * np.abs(X).max())
    assert X.flags.c_contiguous


def by_driver(A: FloatArray, B: FloatArray, cutoff: float) -> tuple[FloatArray, int]:
    """What LAPACK's driver returns, and the rank that it takes."""
    rows, columns = A.shape
    right = np.zeros((max(rows, columns), B.shape[1]), order="F")
    right[:rows] = B
    pivots = np.zeros((columns, 1), dtype=np.int32)
    _, X, _, rank, _ = dgelsy(A, right, pivots, cutoff, 64 * (2 * columns + B.shape[1] + 65))
    return np.ascontiguousarray(X[:columns]), rank


@examples(200)
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 4)),
    st.lists(st.floats(-9, 0), min_size=1, max_size=20),
    st.floats(-9, -1),
    st.integers(0, 2**32),
)
@on_one_thread
def test_it_has_the_bits_of_the_driver(
    shapes: tuple[int, int, int], sizes: list[float], cutoff: float, seed: int
) -> None:
    rows, columns, c = shapes
    rng = np.random.default_rng(seed)
    scales = 10.0 ** np.array(sizes)
    A = (rng.normal(size=(rows, len(sizes))) * scales) @ rng.normal(size=(len(sizes), columns))
    B = rng.normal(size=(rows, c))
    expected, rank = by_driver(A, B, 10.0**cutoff)
    assert least_squares(A, B, 10.0**cutoff).tobytes() == expected.tobytes()
    if rows >= columns:
        R, *_ = dgeqp3(A)
        assert numerical_rank(R, B, 10.0**cutoff) in {rank, UNSURE}


@pytest.mark.parametrize(
    ("A", "B"),
    [
        (np.diag([1.0, 1e-6]), np.ones((2, 1))),  # at the cutoff
        (np.diag([1e-300, 1e-301]), np.ones((2, 1))),  # the driver scales these
        (np.diag([1e300, 1e299]), np.ones((2, 1))),
        (np.eye(2), np.full((2, 1), 1e-300)),
        (np.eye(2), np.full((2, 1), 1e300)),
        (np.zeros((2, 2)), np.ones((2, 1))),
    ],
)
def test_what_rounding_or_scaling_could_decide_is_left_to_the_driver(A: FloatArray, B: FloatArray) -> None:
    assert numerical_rank(A, B, 1e-6) == UNSURE
    assert least_squares(A, B, 1e-6).tobytes() == by_driver(A, B, 1e-6)[0].tobytes()


@pytest.mark.parametrize("B", [np.zeros((3, 2)), np.ones((3, 2))])
def test_the_right_side_may_be_zero(B: FloatArray) -> None:
    A = np.diag([3.0, 2.0, 1.0])
    assert numerical_rank(A, B, 1e-6) == 3
    assert least_squares(A, B, 1e-6).tobytes() == by_driver(A, B, 1e-6)[0].tobytes()


@pytest.mark.parametrize("solve", [least_squares, plain_least_squares])
def test_what_is_below_the_cutoff_counts_as_zero(solve: object) -> None:
    assert callable(solve)
    rng = np.random.default_rng(0)
    A = with_singular_values(rng, 12, [1.0, 0.5, 0.2, 1e-9, 1e-10])
    B = rng.normal(size=(12, 3))
    np.testing.assert_allclose(solve(A, B, 1e-3), np.linalg.pinv(A, rcond=1e-3) @ B, atol=1e-6)


@given(st.integers(0, 2**32))
def test_the_plain_way_is_the_same_where_all_is_far_above_the_cutoff(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = with_singular_values(rng, 20, [3.0, 1.0, 0.1, 0.03]), rng.normal(size=(20, 4))
    X = plain_least_squares(A, B, 1e-3)
    np.testing.assert_allclose(X, np.linalg.pinv(A) @ B, rtol=1e-9, atol=1e-9)
    assert X.flags.c_contiguous


@given(st.floats(1e-12, 3e-4), st.integers(0, 2**32))
def test_the_plain_way_is_left_where_something_is_below_the_cutoff(least: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = with_singular_values(rng, 20, [1.0, 0.9, 0.8, least]), rng.normal(size=(20, 4))
    assert (plain_least_squares(A, B, 1e-3) == least_squares(A, B, 1e-3)).all()


def test_nothing_is_learned_from_zeros() -> None:
    assert not plain_least_squares(np.zeros((5, 2)), np.ones((5, 1)), 1e-3).any()


def test_what_is_given_stays() -> None:
    rng = np.random.default_rng(0)
    A, B = np.asfortranarray(rng.normal(size=(5, 3))), np.asfortranarray(rng.normal(size=(5, 2)))
    before = A.copy(), B.copy()
    least_squares(A, B, 1e-6)
    plain_least_squares(A, B, 1e-3)
    assert (before[0] == A).all()
    assert (before[1] == B).all()
