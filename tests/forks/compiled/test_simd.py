from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numba.core.errors import TypingError

from forks.arrays import FloatArray
from forks.compiled.simd import broadcast, fma, horizontal_sum, load, store, subtract
from tests.support.examples import examples

numbers = st.floats(-1e100, 1e100)
eights = st.lists(numbers, min_size=8, max_size=8).map(np.array)


def fused(a: float, b: float, c: float) -> float:
    """a b + c by exact arithmetic, rounded once."""
    return float(Fraction(a) * Fraction(b) + Fraction(c))


@njit(cache=False)
def fma_of_numbers(a: float, b: float, c: float) -> float:
    result: float = fma(a, b, c)
    return result


@njit(cache=False)
def fma_of_eights(a: FloatArray, b: FloatArray, c: FloatArray, out: FloatArray) -> None:
    store(out, 0, fma(load(a, 0), load(b, 0), load(c, 0)))


@njit(cache=False)
def differences(a: FloatArray, b: FloatArray, out: FloatArray) -> None:
    store(out, 0, subtract(load(a, 0), load(b, 0)))


@njit(cache=False)
def summed(a: FloatArray) -> float:
    result: float = horizontal_sum(load(a, 0))
    return result


@njit(cache=False)
def moved(source: FloatArray, row: int, column: int, target: FloatArray, index: int) -> None:
    store(target, index, load(source, (row, column)))


@njit(cache=False)
def filled(x: float, out: FloatArray, row: int, column: int) -> None:
    store(out, (row, column), broadcast(x))


@examples(200)
@given(numbers, numbers, numbers)
def test_a_product_and_a_sum_are_rounded_once(a: float, b: float, c: float) -> None:
    assert fma_of_numbers(a, b, c) == fused(a, b, c)


def test_what_two_roundings_lose_stays() -> None:
    a = 1.0 + 2.0**-30
    assert a * a - 1.0 - 2.0**-29 == 0.0
    assert fma_of_numbers(a, a, -1.0 - 2.0**-29) == 2.0**-60


@examples(50)  # the first example may compile
@given(eights, eights, eights)
def test_vectors_have_the_bits_of_scalars(a: FloatArray, b: FloatArray, c: FloatArray) -> None:
    out = np.empty(8)
    fma_of_eights(a, b, c, out)
    assert out.tolist() == [fma_of_numbers(*each) for each in zip(a, b, c, strict=True)]
    differences(a, b, out)
    assert (out == a - b).all()


@given(eights)
def test_a_vector_is_summed_in_halves(a: FloatArray) -> None:
    four = a[:4] + a[4:]
    two = four[:2] + four[2:]
    assert summed(a) == two[0] + two[1]


def test_vectors_are_loaded_and_stored_at_any_index() -> None:
    source, target = np.arange(60.0).reshape(3, 20), np.zeros(12)
    moved(source, 1, 7, target, 3)
    assert target.tolist() == [0, 0, 0, *range(27, 35), 0]
    out = np.zeros((2, 10))
    filled(0.5, out, 1, 1)
    assert out.tolist() == [[0.0] * 10, [0.0] + [0.5] * 8 + [0.0]]


def test_numbers_that_do_not_lie_side_by_side_are_refused() -> None:
    with pytest.raises(TypingError, match="C-contiguous"):
        moved(np.zeros((20, 3)).T, 0, 0, np.zeros(8), 0)
