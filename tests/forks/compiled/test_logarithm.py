from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks.arrays import FloatArray
from forks.compiled.logarithm import log1p, logarithm
from forks.jit import njit


@njit(cache=False, allocates=True)
def logarithms(values: FloatArray) -> FloatArray:
    """Return all at once, by a loop that the compiler makes vector instructions of."""
    out = np.empty(len(values))
    for i in range(len(values)):
        out[i] = logarithm(values[i])
    return out


@njit(cache=False, allocates=True)
def logs1p(values: FloatArray) -> FloatArray:
    """Return all at once, by a loop that the compiler makes vector instructions of."""
    out = np.empty(len(values))
    for i in range(len(values)):
        out[i] = log1p(values[i])
    return out


def units_off(found: FloatArray, exact: FloatArray) -> float:
    """Return the largest distance from results in extended precision, in ulp."""
    return float((np.abs(found - exact) / np.spacing(np.abs(exact.astype(np.float64)))).max())


def test_it_is_within_one_and_a_half_units_in_the_last_place() -> None:
    chance, n = np.random.default_rng(0), 100_000
    for values in (
        chance.uniform(0.0, 2.0, n),
        1.0 + 1e-3 * chance.normal(size=n),
        2.0 ** chance.uniform(-1074.0, 1024.0, n),
        math.sqrt(2.0) + chance.uniform(-1e-2, 1e-2, n),  # the mantissa's range ends there
        math.sqrt(0.5) + chance.uniform(-1e-2, 1e-2, n),
    ):
        assert units_off(logarithms(values), np.log(values.astype(np.longdouble))) < 1.5


def test_of_one_more_it_is_within_two_and_a_half() -> None:
    chance, n = np.random.default_rng(0), 100_000
    for values in (
        chance.uniform(0.0, 1.0, n),
        10.0 ** chance.uniform(-320.0, 0.0, n),
        10.0 ** chance.uniform(-20.0, 20.0, n),
        np.arange(1.0, n),
    ):
        assert units_off(logs1p(values), np.log1p(values.astype(np.longdouble))) < 2.5


@given(st.lists(st.floats(0.0), min_size=1, max_size=70))
def test_values_side_by_side_have_the_bits_of_one_alone(values: list[float]) -> None:
    assert logarithms(np.array(values)).tolist() == [logarithm(x) for x in values]
    assert logs1p(np.array(values)).tolist() == [log1p(x) for x in values]


@given(st.floats(0.0, exclude_min=True, allow_infinity=False))
def test_any_one_value_is_near_that_of_the_c_library(x: float) -> None:
    assert logarithm(x) == pytest.approx(math.log(x), rel=5e-16, abs=0.0)
    assert log1p(x) == pytest.approx(math.log1p(x), rel=1e-15, abs=0.0)


def test_powers_of_two_are_the_nearest_numbers() -> None:
    exact = np.log(np.longdouble(2.0)) * np.arange(-1074, 1024)
    assert logarithms(2.0 ** np.arange(-1074.0, 1024.0)).tolist() == exact.astype(np.float64).tolist()


@pytest.mark.parametrize("function", [logarithm, log1p])
def test_infinity_and_what_is_no_number_stay(function: Callable[[float], float]) -> None:
    assert function(math.inf) == math.inf
    assert math.isnan(function(math.nan))


def test_numbers_that_have_no_logarithm() -> None:
    assert logarithm(0.0) == logarithm(-0.0) == -math.inf
    for x in (-5e-324, -1.0, -math.inf):
        assert math.isnan(logarithm(x))


def test_exact_ones() -> None:
    assert logarithm(1.0) == log1p(0.0) == log1p(-0.0) == 0.0
    assert log1p(5e-324) == 5e-324
