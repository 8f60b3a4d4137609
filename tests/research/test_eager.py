from __future__ import annotations

import numpy as np
import pytest

from forks.arrays import FloatArray
from forks.rivals.base.budgeted import random_slot
from research.variants.eager import EagerProjectron, EagerRBP
from tests.forks.rivals.naive import WIDTH, gram, kernel, kernels, stream

BUDGET = 8


def test_eager_rbp_stores_what_has_a_loss() -> None:
    learner = EagerRBP(3, budget=BUDGET, width=WIDTH, seed=5)
    terms: list[tuple[FloatArray, float]] = []
    evictions = right = 0
    for x, y in stream(200):
        score = sum(label * kernel(point, x) for point, label in terms)
        assert learner.predict_one(x) == pytest.approx(score, abs=1e-12)
        assert learner.learn_one(x, y) == pytest.approx(max(0.0, 1.0 - y * score), abs=1e-12)
        right += 0.0 < y * score < 1.0
        if y * score < 1.0 and len(terms) < BUDGET:
            terms.append((x, y))
        elif y * score < 1.0:
            terms[random_slot(5, evictions, BUDGET)] = (x, y)
            evictions += 1
    assert min(evictions, right) > 20


def test_eager_projectron_projects_what_has_a_loss() -> None:
    learner = EagerProjectron(3, budget=BUDGET, width=WIDTH)
    points: list[FloatArray] = []
    coefficients = np.empty(0)
    right = 0
    for x, y in stream(200):
        score = float(coefficients @ kernels(points, x)) if points else 0.0
        assert learner.predict_one(x) == pytest.approx(score, abs=1e-8)
        learner.learn_one(x, y)
        right += 0.0 < y * score < 1.0
        if y * score < 1.0 and len(points) < BUDGET:
            points.append(x)
            coefficients = np.append(coefficients, y)
        elif y * score < 1.0:
            coefficients += y * np.linalg.lstsq(gram(points), kernels(points, x), rcond=None)[0]
    assert right > 20
    assert len(points) == BUDGET
