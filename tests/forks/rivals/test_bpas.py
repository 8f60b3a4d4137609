from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from forks.arrays import FloatArray
from forks.rivals import BPAS
from tests.forks.rivals.naive import WIDTH, kernel, stream

BUDGET = 6


def best_exchange(learner: BPAS, x: FloatArray, y: float, aggressiveness: float) -> tuple[float, int, float]:
    """Search the point to drop and the coefficient of x that make the paper's objective smallest."""
    coefficients = learner.coefficients
    row = [kernel(learner.points[:, r], x) for r in range(BUDGET)]
    value = float(coefficients @ row)

    def objective(r: int, beta: float) -> float:
        a, k = coefficients[r], row[r]
        distance = a * a - 2 * a * beta * k + beta * beta  # |beta k(x, .) - a k(x_r, .)|^2
        return float(distance / 2 + aggressiveness * max(0.0, 1 - y * (value - a * k + beta)))

    found = []
    for r in range(BUDGET):
        best = minimize_scalar(lambda beta, r=r: objective(r, beta), bounds=(-5, 5), options={"xatol": 1e-10})
        found.append((float(best.fun), r, float(best.x)))
    return min(found)


@pytest.mark.parametrize("aggressiveness", [0.3, 1.0])
def test_each_step_is_the_best_exchange_of_a_stored_point_for_the_new_one(aggressiveness: float) -> None:
    learner = BPAS(3, budget=BUDGET, aggressiveness=aggressiveness, width=WIDTH)
    exchanges = 0
    for x, y in stream(120):
        before = learner.copy()
        loss = learner.learn_one(x, y)
        if loss == 0.0:
            expected_points, expected = before.points, before.coefficients
        elif before.stored < BUDGET:
            slot, coefficient = before.stored, y * min(aggressiveness, loss)
            expected_points, expected = replaced(before, slot, x, coefficient)
        else:
            _, slot, coefficient = best_exchange(before, x, y, aggressiveness)
            expected_points, expected = replaced(before, slot, x, coefficient)
            exchanges += 1
        np.testing.assert_array_equal(learner.points, expected_points)
        np.testing.assert_allclose(learner.coefficients, expected, atol=1e-6)
    assert exchanges > 50


def replaced(learner: BPAS, slot: int, x: FloatArray, coefficient: float) -> tuple[FloatArray, FloatArray]:
    points, coefficients = learner.points.copy(), learner.coefficients.copy()
    points[:, slot], coefficients[slot] = x, coefficient
    return points, coefficients


def test_the_score_is_that_of_the_expansion() -> None:
    learner = BPAS(3, budget=BUDGET, width=WIDTH)
    for x, y in stream(60):
        terms = zip(learner.points.T, learner.coefficients, strict=True)
        score = sum(coefficient * kernel(point, x) for point, coefficient in terms)
        assert learner.predict_one(x) == pytest.approx(score, abs=1e-12)
        assert learner.learn_one(x, y) == pytest.approx(max(0.0, 1 - y * score), abs=1e-12)
