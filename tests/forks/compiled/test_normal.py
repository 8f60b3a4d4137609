from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks.arrays import FloatArray
from forks.compiled.normal import FARTHEST, POLE_UNTIL, normal
from forks.jit import njit

BOUND = 2.0**-47
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


@njit(cache=False, allocates=True)
def normals(values: FloatArray) -> FloatArray:
    """Return all at once, (2, n), by a loop that the compiler makes vector instructions of."""
    out = np.empty((2, len(values)))
    for i in range(len(values)):
        out[0, i], out[1, i] = normal(values[i])
    return out


def exact_tail(distance: float) -> tuple[float, float]:
    """Return exp(-t^2 / 2), and the probability of more than t, by the series around 0 with many digits."""
    with localcontext(prec=500):
        t = Decimal(distance)
        term = total = t
        count = 1
        while term > Decimal("1e-330"):
            count += 2
            term *= t * t / count
            total += term
        bell = (-t * t / 2).exp()
        return float(bell), float(Decimal("0.5") - bell / (2 * PI).sqrt() * total)


def off(found: float, exact: float) -> float:
    return abs(found / exact - 1.0)


@pytest.mark.parametrize("start", [0.0, 2.0, 4.0, 6.0, POLE_UNTIL - 0.5])
def test_both_are_within_the_bound(start: float) -> None:
    for t in np.random.default_rng(0).uniform(start, start + 2.0, 40).tolist():
        bell, tail = exact_tail(t)
        assert off(normal(t)[0], bell) < BOUND
        assert off(normal(-t)[1], tail) < BOUND
        assert off(normal(t)[1], 1.0 - tail) <= 2.0**-52


@given(st.floats(-1e300, 1e300))
def test_both_sides_of_the_middle_add_up(z: float) -> None:
    (bell, below), (other_bell, above) = normal(z), normal(-z)
    assert bell == other_bell
    assert below + above == pytest.approx(1.0, abs=2e-16)


@given(st.lists(st.floats(), min_size=1, max_size=70))
def test_values_side_by_side_have_the_bits_of_one_alone(values: list[float]) -> None:
    alone = np.array([normal(z) for z in values]).T
    assert np.array_equal(normals(np.array(values)), alone, equal_nan=True)


def test_the_middle_is_exact() -> None:
    for z in (0.0, -0.0, 5e-324, -5e-324):
        assert normal(z) == (1.0, 0.5)


def test_far_away_there_is_nothing() -> None:
    for z in (FARTHEST, 1.7e308, math.inf):
        assert normal(z) == (0.0, 1.0)
        assert normal(-z) == (0.0, 0.0)


def test_not_a_number_stays_one() -> None:
    assert all(map(math.isnan, normal(math.nan)))
