from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forks.arrays import FloatArray
from forks.compiled.trigonometry import LARGEST_ANGLE, cosine_and_sine
from forks.jit import njit

BOUND = 2.0**-52


@njit(cache=False, allocates=True)
def waves(angles: FloatArray) -> FloatArray:
    """Return all at once, (2, n), by a loop that the compiler makes vector instructions of."""
    out = np.empty((2, len(angles)))
    for i in range(len(angles)):
        out[0, i], out[1, i] = cosine_and_sine(angles[i])
    return out


def test_they_are_off_by_less_than_the_bound() -> None:
    chance, n = np.random.default_rng(0), 100_000
    for angles in (
        chance.uniform(-4.0, 4.0, n),
        chance.normal(size=n) * 1000.0,
        chance.uniform(-LARGEST_ANGLE, LARGEST_ANGLE, n),
        2.0 ** chance.uniform(-1074.0, 50.0, n),
        np.arange(-n / 2, n / 2) * (math.pi / 4.0),  # where the reduction changes, and where one of them is 0
    ):
        exact = angles.astype(np.longdouble)
        assert np.abs(waves(angles) - np.array([np.cos(exact), np.sin(exact)])).max() < BOUND


@given(st.lists(st.floats(), min_size=1, max_size=70))
def test_values_side_by_side_have_the_bits_of_one_alone(angles: list[float]) -> None:
    alone = np.array([cosine_and_sine(x) for x in angles]).T
    assert np.array_equal(waves(np.array(angles)), alone, equal_nan=True)


@given(st.floats(0.0, LARGEST_ANGLE))
def test_the_cosine_is_even_and_the_sine_odd(angle: float) -> None:
    cosine, sine = cosine_and_sine(angle)
    assert cosine_and_sine(-angle) == (cosine, -sine)
    assert math.isclose(math.hypot(cosine, sine), 1.0, rel_tol=1e-15)


def test_small_angles_are_their_own_sines() -> None:
    for angle in (0.0, -0.0, 5e-324, 1e-300, 1e-9):
        assert cosine_and_sine(angle) == (1.0, angle)


def test_larger_angles_are_taken_for_the_largest() -> None:
    largest = cosine_and_sine(LARGEST_ANGLE)
    for angle in (math.nextafter(LARGEST_ANGLE, math.inf), 1.7e308, math.inf):
        assert cosine_and_sine(angle) == largest
        assert cosine_and_sine(-angle) == cosine_and_sine(-LARGEST_ANGLE)


def test_not_a_number_stays_one() -> None:
    assert all(map(math.isnan, cosine_and_sine(math.nan)))
