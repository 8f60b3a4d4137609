"""Quotients are those of Python, which divides whole numbers and rounds once."""

from __future__ import annotations

import math
from random import Random

from hypothesis import example, given
from hypothesis import strategies as st

from forks.jit import njit
from pipeline.records.quotients import MAX_DIGITS, exact_quotient


@njit(cache=False)
def divide(dividend: int, divisor: float) -> float:
    """Let compiled code call what cannot be called otherwise."""
    quotient: float = exact_quotient(dividend, divisor)
    return quotient


def quotient(dividend: int, power: int) -> float:
    return float(divide(dividend, 10.0**power))


@given(dividend=st.integers(0, 10**MAX_DIGITS - 1), power=st.integers(0, 22))
@example(dividend=0, power=17)
@example(dividend=2**53 + 1, power=0)  # halfway between two floats
@example(dividend=2**58 + 2**5, power=0)
@example(dividend=10**MAX_DIGITS - 1, power=22)
def test_a_quotient_is_that_of_python_or_in_doubt(dividend: int, power: int) -> None:
    found = quotient(dividend, power)
    assert math.isnan(found) or found == dividend / 10**power


def test_a_quotient_halfway_between_two_floats_is_in_doubt() -> None:
    assert math.isnan(quotient(2**53 + 1, 0))


def test_the_shortest_texts_of_floats_are_never_in_doubt() -> None:
    chance = Random(1)
    for _ in range(20_000):
        number = chance.choice([chance.random(), chance.expovariate(0.1), 1e-4 * chance.random()])
        whole, _, fraction = f"{number:.17f}".partition(".") if number < 1e-4 else repr(number).partition(".")
        if len(whole + fraction) <= MAX_DIGITS:
            assert quotient(int(whole + fraction), len(fraction)) == float(f"{whole}.{fraction}")
