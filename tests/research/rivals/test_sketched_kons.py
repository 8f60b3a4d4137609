from __future__ import annotations

import math

import numpy as np
import pytest

from forks.losses import LossName
from forks.randomness import Purpose, uniform
from research.rivals import KONS, SketchedKONS
from tests.forks.rivals import naive
from tests.forks.rivals.dense import DenseNewton, orthonormal

ALPHA, ETA, EPSILON, SEED = 0.3, 0.4, 0.5, 7
EVENTS = naive.stream(100, 2)
X, Y = (np.array(column) for column in zip(*EVENTS, strict=True))
K = naive.gram(list(X))


def leverage(entered: list[int], p: list[float], weights: list[float], t: int, weight: float) -> float:
    """Return tau with the event itself among those that entered, as if it had for certain."""
    chosen = [*entered, t]
    D = np.diag(np.sqrt([*(w / q for w, q in zip(weights, p, strict=True)), weight]))
    gradients = D @ K[np.ix_(chosen, chosen)] @ D
    inverse = np.linalg.inv(gradients + ALPHA * np.eye(len(chosen)))
    k = gradients[:, -1]
    return float((1.0 + EPSILON) / ALPHA * (k[-1] - k @ inverse @ k))


@pytest.mark.parametrize(
    ("loss", "clip", "gamma", "beta"),
    [("hinge", math.inf, 0.2, 0.8), ("logistic", 0.4, 0.3, 2.0), ("squared_hinge", 0.9, 0.5, 0.0)],
)
def test_is_newtons_step_with_the_dense_matrix_of_those_that_entered(
    loss: LossName, clip: float, gamma: float, beta: float
) -> None:
    learner = SketchedKONS(
        2,
        width=naive.WIDTH,
        alpha=ALPHA,
        eta=ETA,
        clip=clip,
        loss=loss,
        gamma=gamma,
        beta=beta,
        epsilon=EPSILON,
        seed=SEED,
    )
    G = orthonormal(K)
    dense = DenseNewton(len(K), ALPHA, ETA, clip, loss)
    entered: list[int] = []
    p: list[float] = []
    weights: list[float] = []
    drawn = 0
    for t, (x, y) in enumerate(EVENTS):
        assert learner.predict_one(x) == pytest.approx(dense.score(G[t]), abs=1e-9)
        learner.learn_one(x, y)
        slope = dense.slope(G[t], y)
        if weight := ETA * slope**2:
            chance = max(gamma, min(beta * leverage(entered, p, weights, t, weight), 1.0))
            enters = uniform(SEED, Purpose.HESSIAN, drawn) < chance
            drawn += 1
            if enters:
                entered.append(t)
                p.append(chance)
                weights.append(weight)
            dense.learn(G[t], y, enters=enters)
        else:
            dense.learn(G[t], y)
    np.testing.assert_array_equal(learner.points.T[learner.entered], X[entered])
    assert 0 < len(entered) < drawn
    assert beta == 0.0 or any(gamma < q for q in p)


def test_is_kons_where_all_enter() -> None:
    exact = KONS(2, loss="logistic", clip=2.0).predict_and_learn_many(X, Y)
    sketched = SketchedKONS(2, loss="logistic", clip=2.0, gamma=1.0).predict_and_learn_many(X, Y)
    assert sketched.tolist() == exact.tolist()


def test_about_gamma_of_the_events_enter_where_they_are_alike() -> None:
    shares = []
    for seed in range(10):
        learner = SketchedKONS(1, gamma=0.2, loss="logistic", seed=seed)
        learner.learn_many(np.zeros((300, 1)), np.resize([1.0, -1.0], 300))
        assert len(learner.coefficients) == 300
        shares.append(len(learner.entered) / 300)
    assert len(set(shares)) > 3
    assert np.mean(shares) == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize(
    ("field", "value"),
    [("gamma", 0.0), ("gamma", 1.1), ("beta", -1.0), ("epsilon", -0.1), ("alpha", 0.0), ("seed", -1)],
)
def test_a_setting_out_of_range_is_named(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{field} must be"):
        SketchedKONS(1, **{field: value})  # type: ignore[arg-type]  # that is what is refused
