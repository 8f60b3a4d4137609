from __future__ import annotations

import numpy as np
import pytest

from forks.arrays import FloatArray
from forks.rivals import RBP
from forks.rivals.base.budgeted import random_slot
from tests.forks.rivals.naive import WIDTH, kernel, stream

BUDGET = 8


def test_it_is_the_perceptron_with_a_random_point_replaced_once_full() -> None:
    learner = RBP(3, budget=BUDGET, width=WIDTH, seed=5)
    terms: list[tuple[FloatArray, float]] = []
    evictions = 0
    for x, y in stream(300):
        score = sum(label * kernel(point, x) for point, label in terms)
        assert learner.predict_one(x) == pytest.approx(score, abs=1e-12)
        learner.learn_one(x, y)
        if y * score <= 0 and len(terms) < BUDGET:
            terms.append((x, y))
        elif y * score <= 0:
            terms[random_slot(5, evictions, BUDGET)] = (x, y)
            evictions += 1
    assert evictions > 50
    assert learner.evictions == evictions


def test_every_slot_is_evicted_equally_often() -> None:
    slots = [random_slot(0, eviction, 10) for eviction in range(4000)]
    counts = np.bincount(slots, minlength=10)
    assert np.abs(counts - 400).max() < 4.5 * np.sqrt(400 * 0.9)
    assert slots != [random_slot(1, eviction, 10) for eviction in range(4000)]
