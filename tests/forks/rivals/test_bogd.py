from __future__ import annotations

import numpy as np
import pytest

from forks.arrays import FloatArray
from forks.rivals import BOGD, bogd
from forks.rivals.base.budgeted import random_slot
from tests.forks.rivals.naive import WIDTH, kernel, stream

BUDGET, STEP, DECAY = 8, 0.3, 0.05


@pytest.mark.parametrize("largest", [1.5, 1e9])
def test_it_descends_and_weighs_up_for_what_it_forgets(largest: float) -> None:
    learner = BOGD(3, budget=BUDGET, step=STEP, decay=DECAY, largest=largest, width=WIDTH, seed=3)
    terms: list[tuple[FloatArray, float]] = []
    evictions = bounded = 0
    for x, y in stream(300):
        score = sum(a * kernel(point, x) for point, a in terms)
        assert learner.predict_one(x) == pytest.approx(score, abs=1e-12)
        learner.learn_one(x, y)
        terms = [(point, (1 - STEP * DECAY) * a) for point, a in terms]
        if y * score >= 1:
            continue
        if len(terms) < BUDGET:
            terms.append((x, STEP * y))
            continue
        terms = [(point, a * BUDGET / (BUDGET - 1)) for point, a in terms]
        terms[random_slot(3, evictions, BUDGET)] = (x, STEP * y)
        evictions += 1
        excess = max(abs(a) for _, a in terms) / (largest * STEP)
        if excess > 1:
            terms = [(point, a / excess) for point, a in terms]
            bounded += 1
    assert evictions > 50
    assert (bounded > 0) == (largest == 1.5)


def test_on_average_forgetting_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = BOGD(3, budget=BUDGET, step=STEP, decay=DECAY, largest=1e9, width=WIDTH)
    events = stream(40)
    for x, y in events:
        learner.learn_one(x, y)
    (x, _), (other, _) = events[0], events[1]
    y = -1.0 if learner.predict_one(x) > 0 else 1.0
    expected = (1 - STEP * DECAY) * learner.predict_one(other) + STEP * y * kernel(x, other)
    scores = []
    for slot in range(BUDGET):
        monkeypatch.setattr(bogd, "random_slot", lambda *_, slot=slot: slot)
        after = learner.copy()
        after.learn_one(x, y)
        scores.append(after.predict_one(other))
    assert np.mean(scores) == pytest.approx(expected, abs=1e-12)
    assert np.std(scores) > 0.01
