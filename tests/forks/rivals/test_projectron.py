from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from forks.arrays import FloatArray
from forks.rivals import Projectron, ProjectronPlus
from tests.forks.rivals.naive import WIDTH, gram, kernels, stream

BUDGET = 10


class Naive:
    """Both, by least squares on the whole kernel matrix; ``norm`` is U of the second."""

    def __init__(self, norm: float | None = None) -> None:
        self.norm = norm
        self.points: list[FloatArray] = []
        self.coefficients: FloatArray = np.empty(0)
        self.seen: Counter[str] = Counter()

    def score(self, x: FloatArray) -> float:
        return float(self.coefficients @ kernels(self.points, x)) if self.points else 0.0

    def learn(self, x: FloatArray, y: float) -> None:
        loss = 1 - y * self.score(x)
        if loss >= 1 and len(self.points) < BUDGET:
            self.points.append(x)
            self.coefficients = np.append(self.coefficients, y)
        elif loss >= 1:
            self._project(x, y)
            self.seen["projected"] += 1
        elif loss > 0 and self.norm is not None:
            self._learn_margin(x, y, loss, self.norm)

    def _learn_margin(self, x: FloatArray, y: float, loss: float, norm: float) -> None:
        d = self._nearest(x)
        inside = float(d @ gram(self.points) @ d)
        apart = math.sqrt(1 - 2 * float(d @ kernels(self.points, x)) + inside)
        tau: float = min(loss / inside, 1.0)
        if tau * (2 * loss - tau * inside - 2 * norm * apart) >= 0:
            self._project(x, tau * y)
            self.seen["margin"] += 1
        else:
            self.seen["too far"] += 1

    def _project(self, x: FloatArray, coefficient: float) -> None:
        self.coefficients += coefficient * self._nearest(x)

    def _nearest(self, x: FloatArray) -> FloatArray:
        solution, *_ = np.linalg.lstsq(gram(self.points), kernels(self.points, x), rcond=None)
        return solution.astype(np.float64)


def test_projectron_projects_once_its_budget_is_full() -> None:
    learner, naive = Projectron(3, budget=BUDGET, width=WIDTH), Naive()
    for x, y in stream(200):
        assert learner.predict_one(x) == pytest.approx(naive.score(x), abs=1e-8)
        learner.learn_one(x, y)
        naive.learn(x, y)
    assert naive.seen["projected"] > 50


@pytest.mark.parametrize("norm", [None, 0.2])
def test_projectron_plus_learns_margin_errors_where_that_is_progress(norm: float | None) -> None:
    learner = ProjectronPlus(3, budget=BUDGET, norm=norm, width=WIDTH)
    naive = Naive(math.sqrt(11 / math.log(11)) / 4 if norm is None else norm)
    for x, y in stream(200):
        assert learner.predict_one(x) == pytest.approx(naive.score(x), abs=1e-8)
        learner.learn_one(x, y)
        naive.learn(x, y)
    assert min(naive.seen[branch] for branch in ("projected", "margin", "too far")) > 3


def test_a_point_in_the_span_is_not_stored() -> None:
    learner = Projectron(2, budget=5)
    learner.learn_one([1.0, 2.0], 1)
    learner.learn_one([1.0, 2.0], -1)
    assert learner.stored == 1
    assert learner.predict_one([1.0, 2.0]) == 0.0


def test_points_that_lie_close_together_do_no_harm() -> None:
    learner = Projectron(3, budget=50, width=50.0)
    scores = [learner.predict_one(x) for x, y in stream(300) if learner.learn_one(x, y) >= 0.0]
    assert np.isfinite(scores).all()
    assert learner.stored < 50


def test_a_margin_error_whose_projection_is_nearly_nothing_can_be_learned() -> None:
    learner = ProjectronPlus(1, budget=1, norm=1e-3)
    learner.learn_one([0.0], 1)
    far = [28.0]  # its kernel is about 1e-170, whose square is 0
    assert 0.0 < learner.predict_one(far) < 1e-160
    assert learner.learn_one(far, 1) == 1.0
