from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks.arrays import FloatArray
from forks.rivals import Forgetron
from forks.rivals.forgetron import shrinkage
from tests.forks.rivals.naive import WIDTH, kernel, stream

BUDGET = 8


def damage(weight: float, margin: float) -> float:
    """Psi of the paper."""
    return weight**2 + 2 * weight - 2 * weight * margin


def test_it_shrinks_and_forgets_its_oldest_point() -> None:
    learner = Forgetron(3, budget=BUDGET, width=WIDTH)
    terms: list[tuple[FloatArray, float, float]] = []  # point, label, weight; the oldest first
    Q, mistakes, shares = 0.0, 0, []

    def value(x: FloatArray) -> float:
        return sum(weight * label * kernel(point, x) for point, label, weight in terms)

    for x, y in stream(300):
        score = value(x)
        assert learner.predict_one(x) == pytest.approx(score, abs=1e-9)
        learner.learn_one(x, y)
        if y * score > 0:
            continue
        mistakes += 1
        terms.append((x, y, 1.0))
        if len(terms) <= BUDGET:
            continue
        point, label, weight = terms[0]
        margin = label * value(point)
        limit = 15 / 32 * mistakes - Q
        roots = np.roots([weight**2 - 2 * weight * margin, 2 * weight, -limit])
        possible = [1.0, *(root.real for root in roots if root.imag == 0 and 0 < root.real < 1)]
        share = max(phi for phi in possible if damage(phi * weight, phi * margin) <= limit + 1e-12)
        Q += damage(share * weight, share * margin)
        shares.append(share)
        terms = [(point, label, share * weight) for point, label, weight in terms[1:]]
    assert len(shares) > 50
    assert min(shares) < 1.0
    assert learner.mistakes == mistakes
    assert learner.damage == pytest.approx(Q, abs=1e-9)
    assert learner.damage <= 15 / 32 * mistakes + 1e-9


@given(st.floats(-50, 50), st.floats(0, 10), st.floats(-50, -0.01))
def test_shrinkage_is_the_largest_share_that_is_allowed(a: float, b: float, c: float) -> None:
    share = shrinkage(a, b, c)
    assert 0.0 < share <= 1.0
    assert (a * share + b) * share + c <= 1e-9
    larger = np.linspace(share, 1.0, 1001)[1:]
    assert share == 1.0 or ((a * larger + b) * larger + c > -1e-9).all()
