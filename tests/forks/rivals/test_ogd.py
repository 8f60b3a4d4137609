from __future__ import annotations

import math

import numpy as np
import pytest

from forks.losses import LOSSES, LossName, loss_value
from forks.rivals import OGD

LOSS_NAMES: tuple[LossName, ...] = ("hinge", "logistic")


@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_steps_down_the_gradient_of_each_loss_and_less_each_time(loss: LossName) -> None:
    chance = np.random.default_rng(1)
    step = 0.7
    learner = OGD(3, step=step, loss=loss)
    w = np.zeros(3)
    for t, x in enumerate(chance.normal(size=(40, 3)), start=1):
        y = float(chance.choice([-1.0, 1.0]))
        gradient = [
            (loss_value(LOSSES[loss], (w + h) @ x, y) - loss_value(LOSSES[loss], (w - h) @ x, y)) / 2e-6
            for h in 1e-6 * np.eye(3)
        ]
        w = w - step / math.sqrt(t) * np.array(gradient)
        learner.learn_one(x, y)
        np.testing.assert_allclose(learner.weights, w, atol=1e-7)


def test_learns_a_plane() -> None:
    X = np.random.default_rng(2).normal(size=(2000, 4))
    y = np.sign(X @ [1.0, -2.0, 0.5, 0.0])
    scores = OGD(4).predict_and_learn_many(X, y)
    assert np.mean(scores[1000:] * y[1000:] > 0) > 0.97


def test_a_setting_out_of_range_is_named() -> None:
    with pytest.raises(ValueError, match="step must be > 0"):
        OGD(1, step=0.0)
    with pytest.raises(ValueError, match="loss must be one of logistic, hinge"):
        OGD(1, loss="zero")  # type: ignore[arg-type]  # that is what is refused
