"""First-order rivals under other losses than hinge, by hand: at one point again and again, k(x, x) = 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from forks.rivals import BOGD, FOGD, NOGD, SkeGD

STEP, X = 0.2, [2.0]
MAKERS: dict[str, Callable[..., Any]] = {
    "BOGD": lambda **options: BOGD(1, budget=10, decay=0.0, **options),
    "FOGD": lambda **options: FOGD(1, frequencies=5, **options),
    "NOGD, stage 1": lambda **options: NOGD(1, budget=20, **options),
    "NOGD, stage 2": lambda **options: NOGD(1, budget=1, rank=1, **options),
    "SkeGD, stage 1": lambda **options: SkeGD(1, budget=20, decay=0.0, **options),
}
SLOPES: dict[str, Callable[[float, float], float]] = {
    "hinge": lambda score, y: -y if y * score < 1.0 else 0.0,
    "squared_hinge": lambda score, y: -2.0 * y * max(0.0, 1.0 - y * score),
    "logistic": lambda score, y: -y / (1.0 + np.exp(y * score)),
}


@pytest.mark.parametrize("loss", SLOPES)
@pytest.mark.parametrize("name", MAKERS)
def test_each_step_follows_the_slope_of_the_loss(name: str, loss: str) -> None:
    learner = MAKERS[name](step=STEP, loss=loss)
    score = 0.0
    for y in (1.0, 1.0, 1.0, -1.0, -1.0, 1.0, 1.0, 1.0):
        assert learner.predict_one(X) == pytest.approx(score, abs=1e-12)
        learner.learn_one(X, y)
        score -= STEP * SLOPES[loss](score, y)


def test_the_loss_that_learning_returns_is_the_one_that_was_asked_for() -> None:
    for name, make in MAKERS.items():
        assert make(step=STEP, loss="squared_hinge").learn_one(X, -1) == 1.0, name
        learner = make(step=STEP, loss="logistic")
        assert learner.learn_one(X, 1) == pytest.approx(np.log(2.0)), name


def test_sketched_steps_follow_the_slope_too() -> None:
    """With the same map, the score of what is learned moves in proportion to the slope."""
    moves = {}
    for loss in ("hinge", "squared_hinge"):
        learner = SkeGD(
            1, budget=10, landmarks=2, rank=1, cycle=1000, decay=0.0, step=0.01, loss=loss, width=0.5
        )
        for number in range(12):
            learner.learn_one([float(number)], 1 if number % 2 else -1)
        assert learner.stored == 10
        before = learner.predict_one([3.0])
        learner.learn_one([3.0], 1)
        moves[loss] = (before, learner.predict_one([3.0]) - before)
    (_, by_hinge), (score, by_squared) = moves["hinge"], moves["squared_hinge"]
    assert by_squared == pytest.approx(2.0 * (1.0 - score) * by_hinge)


@pytest.mark.parametrize("name", ["BOGD", "FOGD", "NOGD, stage 1"])
def test_an_unknown_loss_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="loss must be one of"):
        MAKERS[name](loss="absolute")
