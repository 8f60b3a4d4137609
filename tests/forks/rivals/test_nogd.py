from __future__ import annotations

import numpy as np
import pytest

from forks.arrays import FloatArray
from forks.rivals import NOGD
from tests.forks.rivals.naive import WIDTH, gram, kernels, stream

BUDGET, STEP = 15, 0.3


@pytest.mark.parametrize("rank", [1, 4, 15])
def test_it_descends_in_the_features_of_its_stored_points(rank: int) -> None:
    learner = NOGD(3, budget=BUDGET, rank=rank, step=STEP, width=WIDTH)
    points: list[FloatArray] = []
    coefficients: list[float] = []
    M, w = np.empty((0, 0)), np.empty(0)
    for x, y in stream(200):
        if len(points) < BUDGET:
            score = float(np.dot(coefficients, kernels(points, x)))
        else:
            score = float(w @ M @ kernels(points, x))
        assert learner.predict_one(x) == pytest.approx(score, abs=1e-9)
        learner.learn_one(x, y)
        if y * score >= 1:
            continue
        if len(points) == BUDGET:
            w = w + STEP * y * M @ kernels(points, x)
            continue
        points.append(x)
        coefficients.append(STEP * y)
        if len(points) == BUDGET:
            U, D, _ = np.linalg.svd(gram(points))
            M = np.diag(D[:rank] ** -0.5) @ U[:, :rank].T
            w = np.array(coefficients) @ np.linalg.pinv(M)
    assert len(points) == BUDGET


def test_points_that_are_there_twice_do_no_harm() -> None:
    learner = NOGD(1, budget=3, rank=3, step=0.1, width=WIDTH)
    for _ in range(4):
        learner.learn_one([1.0], 1)
    # Three steps of 0.1 k(x, x) made the features, and the fourth moves along the one that is not noise.
    assert learner.predict_one([1.0]) == pytest.approx(0.4, abs=1e-12)
    assert np.count_nonzero(np.abs(learner.basis).sum(axis=0)) == 1
