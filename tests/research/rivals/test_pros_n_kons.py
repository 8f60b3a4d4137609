from __future__ import annotations

import math

import numpy as np
import pytest

from forks.arrays import FloatArray
from forks.losses import LossName
from forks.randomness import Purpose, uniform
from research.rivals import PROSNKONS
from tests.forks.rivals import naive
from tests.forks.rivals.dense import DenseNewton, orthonormal

ALPHA, ETA, GAMMA, EPSILON, SEED = 0.3, 0.4, 0.2, 0.5, 7
EVENTS = naive.stream(120, 2)
K = naive.gram([x for x, _ in EVENTS])


def leverage(entered: list[int], p: list[float], t: int) -> float:
    """Return tau with the point itself in the dictionary, as if it had entered for certain."""
    S = np.diag(1.0 / np.sqrt([*p, 1.0]))
    chosen = [*entered, t]
    k = S @ K[chosen, t]
    inverse = np.linalg.inv(S @ K[np.ix_(chosen, chosen)] @ S + GAMMA * np.eye(len(chosen)))
    return float((1.0 + EPSILON) / GAMMA * (K[t, t] - k @ inverse @ k))


def projector(rows: FloatArray) -> FloatArray:
    """Return the projection on the span of rows."""
    P: FloatArray = np.linalg.pinv(rows) @ rows
    return P


@pytest.mark.parametrize(
    ("loss", "clip", "beta", "budget"),
    [("hinge", math.inf, 1.0, None), ("logistic", 0.4, 0.5, None), ("squared_hinge", 0.9, 1.0, 8)],
)
def test_is_newtons_step_on_projections_begun_anew_when_the_dictionary_grows(
    loss: LossName, clip: float, beta: float, budget: int | None
) -> None:
    learner = PROSNKONS(
        2,
        width=naive.WIDTH,
        alpha=ALPHA,
        eta=ETA,
        clip=clip,
        loss=loss,
        gamma=GAMMA,
        beta=beta,
        epsilon=EPSILON,
        budget=budget,
        seed=SEED,
    )
    G = orthonormal(K)
    P = np.zeros_like(K)
    dense = DenseNewton(len(K), ALPHA, ETA, clip, loss)
    entered: list[int] = []
    p: list[float] = []
    clipped = 0
    for t, (x, y) in enumerate(EVENTS):
        score = learner.predict_one(x)
        clipped += abs(score) == clip
        assert score == pytest.approx(dense.score(P @ G[t]), abs=1e-7)
        learner.learn_one(x, y)
        chance = 0.0 if len(entered) == budget else min(beta * leverage(entered, p, t), 1.0)
        if uniform(SEED, Purpose.DICTIONARY, t) < chance:
            entered.append(t)
            p.append(chance)
            P = projector(G[entered])
            dense = DenseNewton(len(K), ALPHA, ETA, clip, loss)
        else:
            dense.learn(P @ G[t], y)
        np.testing.assert_array_equal(learner.points.T, [EVENTS[i][0] for i in entered])
    assert max(np.diff([*entered, len(EVENTS)])) > 10  # there was time to learn
    assert 6 < len(entered) < 40
    assert clipped > 0 or clip == math.inf
    assert budget is None or len(entered) == budget


def test_a_point_that_is_there_already_adds_no_feature() -> None:
    learner = PROSNKONS(1, beta=math.inf)
    for _ in range(3):
        learner.learn_one([0.5], 1)
    learner.learn_one([1.5], 1)
    assert learner.points.tolist() == [[0.5, 0.5, 0.5, 1.5]]
    assert learner.basis.shape == (4, 2)
    k = np.exp(-((learner.points.T - learner.points) ** 2) / 2.0)
    np.testing.assert_allclose(learner.basis.T @ k @ learner.basis, np.eye(2), atol=1e-12)


@pytest.mark.parametrize("budget", [1, 5, 20])
def test_keeps_to_its_budget(budget: int) -> None:
    learner = PROSNKONS(2, width=0.1, gamma=0.01, budget=budget)
    for x, y in EVENTS:
        learner.learn_one(x, y)
        assert learner.points.shape[1] <= budget
    assert learner.points.shape[1] == budget


def test_seeds_make_different_dictionaries() -> None:
    sizes = set()
    for seed in range(8):
        learner = PROSNKONS(2, seed=seed)
        learner.learn_many(*map(np.array, zip(*EVENTS, strict=True)))
        sizes.add(learner.points.tobytes())
    assert len(sizes) == 8


@pytest.mark.parametrize("field", ["width", "alpha", "clip", "gamma", "beta", "budget"])
def test_a_setting_out_of_range_is_named(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} must be"):
        PROSNKONS(1, **{field: 0})  # type: ignore[arg-type]  # one value fits them all


@pytest.mark.parametrize("field", ["eta", "epsilon", "seed"])
def test_a_setting_below_zero_is_named(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} must be"):
        PROSNKONS(1, **{field: -1})  # type: ignore[arg-type]  # one value fits them all
