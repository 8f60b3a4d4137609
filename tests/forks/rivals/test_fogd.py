from __future__ import annotations

import numpy as np
import pytest

from forks.rivals import FOGD
from forks.rivals.fogd import waves
from tests.forks.rivals.naive import WIDTH, kernel, stream

FREQUENCIES, STEP = 12, 0.3


def test_it_descends_in_cosines_and_sines() -> None:
    learner = FOGD(3, frequencies=FREQUENCIES, step=STEP, width=WIDTH)
    w = np.zeros(2 * FREQUENCIES)
    losses = 0
    for x, y in stream(200):
        angles = learner._frequencies.T @ x
        z = np.concatenate([np.cos(angles), np.sin(angles)])
        assert learner.predict_one(x) == pytest.approx(w @ z, abs=1e-10)
        loss = max(0.0, 1 - y * float(w @ z))
        assert learner.learn_one(x, y) == pytest.approx(loss, abs=1e-10)
        if loss > 0:
            w += STEP / FREQUENCIES * y * z  # the paper's eta
            losses += 1
    assert 50 < losses < 200


def test_products_of_features_are_near_the_kernel() -> None:
    learner = FOGD(3, frequencies=20_000, width=WIDTH, seed=1)
    a, b = np.array([0.3, -1.0, 0.5]), np.array([-0.4, 0.2, 0.1])
    products = waves(a, learner._frequencies) @ waves(b, learner._frequencies)
    assert products == pytest.approx(kernel(a, b), abs=0.03)


def test_seeds_draw_other_frequencies() -> None:
    first, second = (FOGD(3, frequencies=2, seed=seed)._frequencies for seed in (0, 1))
    assert (first != second).all()
