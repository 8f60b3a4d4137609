from __future__ import annotations

import numpy as np
import pytest

from forks.losses import LOSSES, LossName, loss_value
from research.rivals import KOGD

LOSS_NAMES: tuple[LossName, ...] = ("hinge", "logistic")


@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_is_gradient_descent_of_the_regularised_loss_in_an_orthonormal_basis(loss: LossName) -> None:
    # Rows of G with G G' = K are the points in an orthonormal basis of the space that they span.
    chance = np.random.default_rng(5)
    X = chance.normal(size=(30, 2))
    Y = chance.choice([-1.0, 1.0], 30)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * 0.8**2))
    G = np.linalg.cholesky(K + 1e-13 * np.eye(30))
    step, decay = 0.6, 0.3
    learner = KOGD(2, width=0.8, step=step, decay=decay, loss=loss)
    w = np.zeros(30)

    def objective(v: np.ndarray, g: np.ndarray, y: float) -> float:
        return float(loss_value(LOSSES[loss], float(v @ g), y) + decay * v @ v / 2)

    for x, y, g in zip(X, Y, G, strict=True):
        assert learner.predict_one(x) == pytest.approx(w @ g, abs=1e-6)
        gradient = [(objective(w + h, g, y) - objective(w - h, g, y)) / 2e-6 for h in 1e-6 * np.eye(30)]
        w = w - step * np.array(gradient)
        learner.learn_one(x, y)


def test_stores_what_had_a_loss_only() -> None:
    learner = KOGD(1, step=1.0, decay=0.0)
    learner.learn_many([[0.0], [0.0], [50.0]], [1, 1, -1])
    assert learner.points.tolist() == [[0.0], [50.0]]
    assert learner.coefficients.tolist() == [1.0, -1.0]


@pytest.mark.parametrize(
    ("field", "value"), [("width", 0.0), ("step", -1.0), ("decay", -0.1), ("decay", 5.0), ("loss", "zero")]
)
def test_a_setting_out_of_range_is_named(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{field} must be"):
        KOGD(1, **{field: value})  # type: ignore[arg-type]  # that is what is refused
