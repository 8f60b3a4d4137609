"""Weights of labels with the rivals: a label of weight h is learned as h labels in a row."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from forks.arrays import FloatArray
from forks.checks import LARGEST_WEIGHT
from forks.losses import LOSSES, LossName, loss_slope
from forks.rivals import (
    AROW,
    BOGD,
    BPAS,
    FOGD,
    NOGD,
    OGD,
    RBP,
    SCW,
    Forgetron,
    FourierNewton,
    Perceptron,
    Projectron,
    ProjectronPlus,
    SkeGD,
    Standardised,
    fourier_newton,
)
from forks.rivals.base.learner import VectorRival
from research.rivals import KOGD
from tests.forks.contract import assert_same
from tests.forks.rivals.naive import WIDTH, stream
from tests.forks.subjects import X, Y
from tests.forks.test_contract import VECTOR_RIVALS

WEIGHTS = np.random.default_rng(5).choice([0.0, 0.3, 1.0, 1.0, 2.0, 40.0], size=len(Y))
PROBES = np.random.default_rng(6).normal(size=(20, 3))
LOSS_NAMES: tuple[LossName, ...] = ("hinge", "squared_hinge", "logistic")
TAKE_WEIGHTS = sorted(name for name, make in VECTOR_RIVALS.items() if make().no_weights is None)


def trained(make: Callable[[], VectorRival], events: int = 60) -> VectorRival:
    learner = make()
    for x, y in stream(events):
        learner.learn_one(x, y)
    return learner


def test_all_but_one_take_weights() -> None:
    assert VECTOR_RIVALS.keys() - set(TAKE_WEIGHTS) == {"Forgetron"}


@pytest.mark.parametrize("name", TAKE_WEIGHTS)
def test_weights_of_one_are_no_weights(name: str) -> None:
    plain, weighted, single = (VECTOR_RIVALS[name]() for _ in range(3))
    scores = plain.predict_and_learn_many(X, Y)
    assert (weighted.predict_and_learn_many(X, Y, np.ones(len(Y))) == scores).all()
    for x, y in zip(X, Y, strict=True):
        single.learn_one(x, y, weight=1.0)
    assert_same(weighted, plain)
    assert_same(single, plain)


@pytest.mark.parametrize("name", TAKE_WEIGHTS)
def test_labels_of_weight_zero_might_as_well_not_be_there(name: str) -> None:
    weighted, without, there = VECTOR_RIVALS[name](), VECTOR_RIVALS[name](), WEIGHTS > 0.0
    losses = weighted.learn_many(X, Y, WEIGHTS)
    assert (losses[there] == without.learn_many(X[there], Y[there], WEIGHTS[there])).all()
    assert_same(weighted, without)
    assert weighted.learn_one(X[0], Y[0], weight=0.0) == weighted.learn_one(X[0], Y[0], weight=0.0)
    assert_same(weighted, without)


@pytest.mark.parametrize("name", TAKE_WEIGHTS)
def test_a_batch_has_the_bits_of_its_events_one_by_one(name: str) -> None:
    batched, single, mixed = (VECTOR_RIVALS[name]() for _ in range(3))
    losses = batched.learn_many(X, Y, WEIGHTS)
    assert losses.tolist() == [single.learn_one(x, y, w) for x, y, w in zip(X, Y, WEIGHTS, strict=True)]
    n = len(Y)
    mixed.run(X, Y, np.arange(n, 2 * n), WEIGHTS)
    assert_same(single, batched)
    assert_same(mixed, batched)


@pytest.mark.parametrize("name", TAKE_WEIGHTS)
def test_weights_have_an_effect_and_break_nothing(name: str) -> None:
    plain, weighted = VECTOR_RIVALS[name](), VECTOR_RIVALS[name]()
    heavy = np.where(np.arange(len(Y)) % 7 == 0, LARGEST_WEIGHT, 0.5)
    scores = weighted.predict_and_learn_many(X, Y, heavy)
    assert np.isfinite(scores).all()
    assert (scores != plain.predict_and_learn_many(X, Y)).any()
    assert all(np.isfinite(np.asarray(value)).all() for value in weighted.state().values())


IN_A_ROW: dict[str, Callable[[], VectorRival]] = {
    "AROW": lambda: AROW(3, r=2.0),
    "BPAS": lambda: BPAS(3, budget=400, aggressiveness=0.1, width=WIDTH),
    "Perceptron": lambda: Perceptron(3, width=WIDTH),
    "Projectron": lambda: Projectron(3, budget=10, width=WIDTH),
    "RBP": lambda: RBP(3, budget=400, width=WIDTH),
    **{
        f"{kind.__name__}, {loss}": partial(kind, 3, loss=loss, width=WIDTH, step=0.1, **options)
        for loss in (*LOSS_NAMES, "squared")
        for kind, options in (
            (BOGD, {"budget": 400, "decay": 0.0}),
            (FOGD, {"frequencies": 10}),
            (NOGD, {"budget": 20, "rank": 5}),
            (SkeGD, {"budget": 20, "decay": 0.0, "cycle": 10_000}),
        )
        if (kind, loss) != (SkeGD, "squared")  # which its settings refuse
    },
}
"""Learners that store what they learn without end, or no longer when `trained`, and that do not decay."""


@pytest.mark.parametrize("weight", [2, 3, 7])
@pytest.mark.parametrize("name", IN_A_ROW)
def test_a_whole_weight_is_as_many_labels_in_a_row(name: str, weight: int) -> None:
    learner = trained(IN_A_ROW[name])
    for x, y in stream(75)[60:]:
        weighted, repeated = learner.copy(), learner.copy()
        weighted.learn_one(x, y, float(weight))
        for _ in range(weight):
            repeated.learn_one(x, y)
        np.testing.assert_allclose(
            weighted.predict_many(PROBES), repeated.predict_many(PROBES), rtol=1e-7, atol=1e-9
        )
        learner.learn_one(x, y)


def test_so_is_one_of_the_fourier_newton_rival_but_for_its_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = trained(lambda: FourierNewton(3, features=10, width=2.0, clip=1.0))
    monkeypatch.setattr(fourier_newton, "update_moments", lambda *_: None)
    for x, y in stream(75)[60:]:
        weighted, repeated = learner.copy(), learner.copy()
        weighted.learn_one(x, y, 3.0)
        for _ in range(3):
            repeated.learn_one(x, y)
            repeated.count -= 1  # type: ignore[attr-defined]  # its own
        repeated.count += 1  # type: ignore[attr-defined]  # as above
        np.testing.assert_allclose(weighted.state()["weights"], repeated.state()["weights"], atol=1e-9)
        np.testing.assert_allclose(
            weighted.state()["inverse_hessian"], repeated.state()["inverse_hessian"], atol=1e-9
        )


@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_linear_descent_counts_a_label_once_and_repeats_its_step(loss: LossName) -> None:
    learner, w = OGD(3, step=0.3, loss=loss), np.zeros(3)
    for t, (x, y) in enumerate(stream(40), start=1):
        for part in (1.0, 1.0, 0.5):
            w = w - part * 0.3 / math.sqrt(t) * loss_slope(LOSSES[loss], float(w @ x), y) * x
        learner.learn_one(x, y, 2.5)
        np.testing.assert_allclose(learner.weights, w, atol=1e-9)
        w = learner.weights.copy()


LIGHT = sorted(
    {name for name in IN_A_ROW if name not in {"AROW", "BPAS"}} | {"RBP, full", "BOGD, full", "OGD"}
)


@pytest.mark.parametrize("name", LIGHT)
def test_a_weight_below_one_is_that_share_of_the_step(name: str) -> None:
    makers = IN_A_ROW | {
        "RBP, full": lambda: RBP(3, budget=5, width=WIDTH),
        "BOGD, full": lambda: BOGD(3, budget=5, width=WIDTH, decay=0.0, largest=1e9),
        "OGD": lambda: OGD(3),
    }
    learner, moved = trained(makers[name]), 0
    for x, y in stream(90)[60:]:
        none, light, whole = learner.copy(), learner.copy(), learner.copy()
        # A label of next to no weight does what is not part of the step, such as to evict.
        for each, weight in ((none, 1e-12), (light, 0.25), (whole, 1.0)):
            each.learn_one(x, y, weight)
        before, after, all_of_it = (each.predict_many(PROBES) for each in (none, light, whole))
        np.testing.assert_allclose(after - before, 0.25 * (all_of_it - before), rtol=1e-6, atol=1e-10)
        moved += bool((all_of_it != before).any())
        learner.learn_one(x, y)
    assert moved > 3


@pytest.mark.parametrize("weight", [0.3, 2.0, 50.0])
@pytest.mark.parametrize(
    ("make", "scaled"),
    [
        (lambda: AROW(3, r=2.0), lambda h: AROW(3, r=2.0 / h)),
        (lambda: SCW(3, C=0.1), lambda h: SCW(3, C=0.1 * h)),
        (lambda: BPAS(3, budget=6, aggressiveness=0.1), lambda h: BPAS(3, budget=6, aggressiveness=0.1 * h)),
    ],
)
def test_a_weight_multiplies_the_loss_in_the_objective(
    make: Callable[[], VectorRival], scaled: Callable[[float], VectorRival], weight: float
) -> None:
    weighted, plain = make(), scaled(weight)
    weights = np.full(len(Y), weight)
    assert weighted.predict_and_learn_many(X, Y, weights) == pytest.approx(plain.predict_and_learn_many(X, Y))


def test_a_projectron_s_margin_error_moves_at_most_by_the_weight() -> None:
    learner = ProjectronPlus(1, budget=1, norm=1e-3)
    learner.learn_one([0.0], 1, 0.5)
    for weight, expected in ((0.125, 0.625), (0.25, 0.875), (100.0, 1.0)):
        learner.learn_one([0.0], 1, weight)
        assert learner.predict_one([0.0]) == pytest.approx(expected)


def test_a_weight_is_learned_until_the_mistake_is_none() -> None:
    for weight, expected in ((0.5, 0.5), (1.0, 1.0), (7.0, 1.0), (LARGEST_WEIGHT, 1.0)):
        learner = Perceptron(1)
        learner.learn_one([0.0], 1, weight)
        assert learner.predict_one([0.0]) == expected
    far = Projectron(1, budget=1)
    far.learn_one([0.0], -1)
    far.learn_one([28.0], 1, 3.0)  # its projection is about 1e-170: three steps do not make it right
    assert far.predict_one([0.0]) == pytest.approx(-1.0)


@pytest.mark.parametrize("loss", [*LOSS_NAMES, "squared"])
def test_no_weight_goes_further_and_further_away(loss: Any) -> None:
    """Steps of squared loss that are too long go back and forth, further away each time."""
    learner = OGD(1, step=1.0, loss=loss)
    learner.learn_one([10.0], 1, LARGEST_WEIGHT)
    assert abs(learner.predict_one([10.0])) <= 200.0


@pytest.mark.parametrize("weight", [-0.1, 1000.1, math.nan, math.inf, "heavy", None, [1.0]])
def test_a_weight_out_of_range_is_refused_by_name(weight: Any) -> None:
    learner = OGD(1)
    calls: list[Callable[[], object]] = [
        lambda: learner.learn_one([1.0], 1, weight),
        lambda: learner.learn_many([[1.0]], [1], [weight]),
        lambda: learner.predict_and_learn_many([[1.0]], [1], [weight]),
        lambda: learner.run([[1.0]], [1], [1], [weight]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="weight"):
            call()
    assert learner.count == 0


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (VECTOR_RIVALS["Forgetron"], "the Forgetron allows an eviction the damage of one mistake"),
        (lambda: KOGD(3), "this learner is not defined for weights of labels"),
    ],
)
def test_who_takes_no_weights_says_so_and_learns_nothing(
    make: Callable[[], VectorRival], reason: str
) -> None:
    learner, before = make(), make()
    with pytest.raises(ValueError, match=f"weight must be 1: {reason}"):
        learner.learn_one(X[0], Y[0], 2.0)
    with pytest.raises(ValueError, match=r"weights\[1\] must be 1: " + reason):
        learner.learn_many(X[:2], Y[:2], [1.0, 0.0])
    assert_same(learner, before)
    learner.learn_many(X[:2], Y[:2], [1.0, 1.0])
    assert learner.learn_one(X[2], Y[2], 1.0) >= 0.0


def test_a_wrapped_learner_is_as_its_own() -> None:
    assert Standardised(OGD(1)).no_weights is None
    assert Standardised(Forgetron(1)).no_weights == Forgetron(1).no_weights
    weighted, moments = Standardised(OGD(3)), Standardised(OGD(3))
    weighted.learn_many(X, Y, np.full(len(Y), 3.0))
    moments.learn_many(X, Y)
    assert (weighted.mean == moments.mean).all()
    assert not np.array_equal(np.asarray(weighted.inner.state()["weights"]), _weights(moments))


def _weights(learner: Any) -> FloatArray:
    array: FloatArray = learner.inner.state()["weights"]
    return array
