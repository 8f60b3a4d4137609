from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forks.algorithm.kernels import gaussian_in_place
from forks.arrays import FloatArray
from forks.compiled.exponential import SMALLEST, exponential


def exponentials(values: FloatArray) -> FloatArray:
    """Return all at once, by a loop that the compiler makes vector instructions of."""
    out = -values
    gaussian_in_place(out, 1.0)
    return out


def units_off(values: FloatArray) -> FloatArray:
    """Return the distance from the result in extended precision, in ulp."""
    exact = np.exp(values.astype(np.longdouble))
    distance = np.abs(exponentials(values) - exact) / np.spacing(exact.astype(np.float64))
    return distance.astype(np.float64)


def test_it_is_within_one_unit_in_the_last_place() -> None:
    chance = np.random.default_rng(0)
    assert units_off(chance.uniform(SMALLEST, 0.0, 100_000)).max() < 1.0
    assert units_off(-chance.exponential(1.0, 100_000)).max() < 1.0
    assert units_off(-(2.0 ** -chance.uniform(0.0, 1070.0, 10_000))).max() < 1.0


def test_it_is_accurate_where_the_reduction_changes_from_one_power_to_the_next() -> None:
    edges = -math.log(2.0) * (np.arange(1000) + 0.5)
    around = np.concatenate([edges, np.nextafter(edges, 0.0), np.nextafter(edges, -np.inf)])
    assert units_off(around).max() < 1.0


@given(st.floats(SMALLEST, 0.0))
def test_any_one_value_is_within_two_units_of_numpys(x: float) -> None:
    assert abs(exponential(x) - np.exp(x)) <= 2 * np.spacing(np.exp(x))


@given(st.lists(st.floats(-1000.0, 0.0), min_size=1, max_size=70))
def test_values_side_by_side_have_the_bits_of_one_alone(values: list[float]) -> None:
    assert exponentials(np.array(values)).tolist() == [exponential(x) for x in values]


def test_zero_is_exactly_one() -> None:
    assert exponential(0.0) == exponential(-0.0) == 1.0


def test_far_below_there_is_nothing() -> None:
    assert exponential(SMALLEST) > 0.0
    for x in (math.nextafter(SMALLEST, -math.inf), -1e10, -1.7e308, -math.inf):
        assert exponential(x) == 0.0


def test_not_a_number_stays_one() -> None:
    assert math.isnan(exponential(math.nan))
