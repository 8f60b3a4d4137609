"""Weights of labels: one of weight h is learned as h labels in a row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forks import LOSSES, Forks, ForksSettings
from forks.algorithm.newton import NewtonState, newton_step, project
from forks.algorithm.weighted import repeated_slope, weighted_project_and_step
from forks.arrays import FloatArray
from forks.checks import LARGEST_WEIGHT
from forks.losses import loss_curvature, loss_slope, loss_value
from tests.forks.learning.test_bits import SETTINGS, X, Y, assert_same_bits, every_setting
from tests.support.examples import examples

SIGMA = 0.5
losses = st.sampled_from(list(LOSSES))
weights = st.sampled_from([0.25, 0.5, 1.0, 2.0, 2.75, 7.0]) | st.floats(1e-6, 30.0)
WEIGHTS = np.random.default_rng(5).choice([0.0, 0.3, 1.0, 1.0, 2.0, 40.0], size=len(Y))


def parts(weight: float) -> list[float]:
    """Return the lengths of the steps of a label: whole ones, and then what is left."""
    whole = [1.0] * math.floor(weight)
    return whole + ([weight - len(whole)] if weight > len(whole) else [])


def label_for(loss: str, rng: np.random.Generator) -> float:
    return float(rng.normal(scale=3.0)) if loss == "squared" else float(rng.choice([-1.0, 1.0]))


def weighted_step(
    newton: NewtonState,
    z: FloatArray,
    label: float,
    weight: float,
    loss: Any,
    *,
    clip: float,
    own: bool = True,
) -> None:
    """Learn a label, the score within the clip."""
    score = float(newton.weights @ z)
    kept = float(np.clip(score, -clip, clip))
    u, root = newton.inverse_hessian @ z, np.empty(len(z))
    weighted_project_and_step(
        newton.weights,
        z,
        u,
        score - kept,
        kept,
        label,
        weight,
        LOSSES[loss],
        SIGMA,
        own,
        clip,
        True,
        root,
    )
    newton.inverse_hessian[:] -= np.outer(root, root)


@examples(60)  # the first example may compile
@given(st.integers(0, 2**32), losses, st.booleans(), weights)
def test_steps_are_those_of_dense_newton_steps_in_a_row(
    seed: int, loss: Any, own: bool, weight: float
) -> None:
    """Each part of a weight adds its curvature to A, and then steps by its gradient at the score so far."""
    rng, n, clip = np.random.default_rng(seed), 4, 5.0
    newton, A, w = NewtonState.prior(n, 0.8), 0.8 * np.eye(n), np.zeros(n)
    for _ in range(8):
        z, label = rng.normal(size=n), label_for(loss, rng)
        weighted_step(newton, z, label, weight, loss, clip=clip, own=own)
        for part in parts(weight):
            score = float(w @ z)
            excess = score - float(np.clip(score, -clip, clip))
            along = np.linalg.solve(A, z)
            w -= excess * along / (z @ along)
            slope = loss_slope(LOSSES[loss], score - excess, label)
            curvature = loss_curvature(LOSSES[loss], score - excess, label) if own else SIGMA * slope**2
            A += part * curvature * np.outer(z, z)
            w -= part * slope * np.linalg.solve(A, z)
    np.testing.assert_allclose(newton.weights, w, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(newton.inverse_hessian, np.linalg.inv(A), rtol=1e-6, atol=1e-9)


@given(st.integers(0, 2**32), losses, st.integers(1, 9))
def test_a_whole_weight_is_as_many_labels_in_a_row(seed: int, loss: Any, weight: int) -> None:
    rng, clip = np.random.default_rng(seed), 3.0
    weighted, repeated = NewtonState.prior(3, 0.5), NewtonState.prior(3, 0.5)
    for _ in range(6):
        z, label = rng.normal(size=3), label_for(loss, rng)
        weighted_step(weighted, z, label, float(weight), loss, clip=clip)
        for _ in range(weight):
            score = project(repeated, z, clip, np.empty(3))
            slope, curvature = (of(LOSSES[loss], score, label) for of in (loss_slope, loss_curvature))
            newton_step(repeated, z, slope, curvature, np.empty(3))
    np.testing.assert_allclose(weighted.weights, repeated.weights, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(weighted.inverse_hessian, repeated.inverse_hessian, rtol=1e-8, atol=1e-12)


@given(st.integers(0, 2**32), weights)
def test_with_squared_loss_gradient_and_curvature_count_as_often_as_the_weight_says(
    seed: int, weight: float
) -> None:
    rng = np.random.default_rng(seed)
    newton, scaled = NewtonState.prior(3, 0.5), NewtonState.prior(3, 0.5)
    for _ in range(6):
        z, label = rng.normal(size=3), float(rng.normal())
        slope = 2.0 * (float(scaled.weights @ z) - label)
        weighted_step(newton, z, label, weight, "squared", clip=math.inf)
        newton_step(scaled, z, weight * slope, weight * 2.0, np.empty(3))
    np.testing.assert_allclose(newton.weights, scaled.weights, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(newton.inverse_hessian, scaled.inverse_hessian, rtol=1e-7, atol=1e-10)


@example(1122, "squared_hinge", False)
@given(st.integers(0, 2**32), losses.filter(lambda loss: loss != "hinge"), st.booleans())
def test_a_light_label_s_step_is_the_gradient_of_its_weighted_loss(seed: int, loss: Any, own: bool) -> None:
    """By finite differences: at A = I the step of a small weight is -weight times the gradient."""
    rng, h, weight = np.random.default_rng(seed), 1e-5, 1e-8
    w, z, label = rng.normal(size=3), rng.normal(size=3), label_for(loss, rng)
    newton = NewtonState(w.copy(), np.eye(3))
    gradient = np.array(
        [
            (
                loss_value(LOSSES[loss], float((w + h * unit) @ z), label)
                - loss_value(LOSSES[loss], float((w - h * unit) @ z), label)
            )
            / (2 * h)
            for unit in np.eye(3)
        ]
    )
    weighted_step(newton, z, label, weight, loss, clip=math.inf, own=own)
    np.testing.assert_allclose((newton.weights - w) / weight, -gradient, rtol=1e-3, atol=1e-3)


@given(st.floats(-8, 8), st.sampled_from([-1.0, 1.0]), st.floats(0, 1000), st.floats(0.01, 1.0))
def test_no_weight_moves_a_logistic_score_far_beyond_its_label(
    score: float, label: float, weight: float, along: float
) -> None:
    """A step of as many times the gradient would: 1000 times a slope of 1."""
    newton = NewtonState(np.array([score]), np.array([[along]]))
    if weight > 0.0:
        weighted_step(newton, np.ones(1), label, weight, "logistic", clip=math.inf)
    assert label * newton.weights[0] < max(label * score, 0.0) + math.log1p(weight) + 4.0


@examples(30)
@given(st.integers(1, 5), losses, st.floats(-2, 2))
def test_gradient_descent_repeats_its_step(weight: int, loss: Any, score: float) -> None:
    label, step, f = 1.0, 0.2, score
    for _ in range(weight):
        f -= step * loss_slope(LOSSES[loss], f, label)
    moved = -step * repeated_slope(LOSSES[loss], score, label, float(weight), step)
    assert score + moved == pytest.approx(f, abs=1e-12)


@pytest.mark.parametrize("weight", [0.5, 1.0, 2.75, 6.0])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge"])
def test_stage_one_stores_a_point_once_with_all_its_steps(loss: Any, weight: float) -> None:
    settings = ForksSettings.paper(1, budget=5, landmarks=2, rank=1, loss=loss, decay=0.0)
    learner, expected, points = Forks(settings), np.zeros(0), np.zeros((0, 1))
    for x, label in zip([0.0, 0.3, 1.0, -0.4], [1.0, -1.0, 1.0, 1.0], strict=True):
        kernel = np.exp(-((points[:, 0] - x) ** 2) / (2.0 * settings.width**2))
        score, steps = float(kernel @ expected), 0.0
        for part in parts(weight):
            steps -= part * settings.step * loss_slope(LOSSES[loss], score + steps, label)
        if loss_value(LOSSES[loss], score, label) > 0.0:
            points, expected = np.vstack([points, [[x]]]), np.append(expected, steps)
        learner.learn_one([x], label, weight)
    np.testing.assert_allclose(learner.state()["coefficients"], expected, rtol=1e-9)
    np.testing.assert_allclose(learner.state()["points"], points)


@every_setting
def test_weights_of_one_are_no_weights(name: str) -> None:
    plain, weighted, single = (Forks(SETTINGS[name]) for _ in range(3))
    scores = plain.predict_and_learn_many(X, Y)
    assert (weighted.predict_and_learn_many(X, Y, np.ones(len(Y))) == scores).all()
    assert_same_bits(weighted, plain)
    for x, y in zip(X, Y, strict=True):
        single.learn_one(x, y, weight=1.0)
    assert_same_bits(single, plain)


@every_setting
def test_labels_of_weight_zero_might_as_well_not_be_there(name: str) -> None:
    there = WEIGHTS > 0.0
    weighted, without = Forks(SETTINGS[name]), Forks(SETTINGS[name])
    losses = weighted.learn_many(X, Y, WEIGHTS)
    assert (losses[there] == without.learn_many(X[there], Y[there], WEIGHTS[there])).all()
    assert_same_bits(weighted, without)
    score = weighted.predict_one(X[0])
    assert weighted.learn_one(X[0], Y[0], weight=0.0) == loss_value(LOSSES[SETTINGS[name].loss], score, Y[0])
    assert_same_bits(weighted, without)


@every_setting
def test_a_batch_has_the_bits_of_its_events_one_by_one(name: str) -> None:
    batched, single, mixed = (Forks(SETTINGS[name]) for _ in range(3))
    losses = batched.learn_many(X, Y, WEIGHTS)
    single_losses = [single.learn_one(x, y, w) for x, y, w in zip(X, Y, WEIGHTS, strict=True)]
    assert (losses == single_losses).all()
    assert_same_bits(single, batched)
    n = len(Y)
    order = np.stack([np.arange(n), np.arange(n, 2 * n)], axis=1).reshape(-1)
    scores = mixed.run(X, Y, order, WEIGHTS)
    assert_same_bits(mixed, batched)
    loss = LOSSES[SETTINGS[name].loss]
    # A score before its label is learned, where learning does not change the map first.
    assert [loss_value(loss, s, y) for s, y in zip(scores, Y, strict=True)] == losses.tolist()


@every_setting
def test_a_learner_goes_on_with_the_same_bits_after_a_restart(name: str) -> None:
    whole, first = Forks(SETTINGS[name]), Forks(SETTINGS[name])
    whole.learn_many(X, Y, WEIGHTS)
    first.learn_many(X[:120], Y[:120], WEIGHTS[:120])
    again = Forks.from_state(first.settings, first.state())
    again.learn_many(X[120:], Y[120:], WEIGHTS[120:])
    assert_same_bits(again, whole)


@every_setting
def test_weights_have_an_effect_and_break_nothing(name: str) -> None:
    plain, weighted = Forks(SETTINGS[name]), Forks(SETTINGS[name])
    heavy = np.where(np.arange(len(Y)) % 7 == 0, LARGEST_WEIGHT, 1.0)
    scores = weighted.predict_and_learn_many(X, Y, heavy)
    assert np.isfinite(scores).all()
    assert (scores != plain.predict_and_learn_many(X, Y)).any()
    assert all(np.isfinite(np.asarray(value)).all() for value in weighted.state().values())


@pytest.mark.parametrize("tracking", [False, True])
def test_labels_that_count_more_decide_what_is_learned(tracking: bool) -> None:
    """Half of the labels say the opposite of the others; those that weigh more are believed."""
    rng = np.random.default_rng(8)
    events = rng.normal(size=(1500, 2))
    truth = np.where(events[:, 0] > 0, 1.0, -1.0)
    heavy = rng.random(1500) < 0.5
    y = np.where(heavy, truth, -truth)
    learner = Forks(ForksSettings.practical(2, tracking=tracking))
    learner.learn_many(events, y, np.where(heavy, 5.0, 1.0))
    scores = learner.predict_many(events)
    assert np.mean((scores > 0) == (truth > 0)) > 0.9
    # The odds are those of the weights: 5 to 1.
    assert np.median(scores * truth) == pytest.approx(math.log(5.0), abs=0.5)


def test_rare_labels_that_stand_for_many_give_the_odds_of_all() -> None:
    """Of the negative events one in ten is kept, and counts as ten."""
    rng = np.random.default_rng(9)
    events = rng.normal(size=(20_000, 1))
    y = np.where(rng.random(20_000) < 1 / (1 + np.exp(3.0 - events[:, 0])), 1.0, -1.0)
    kept = (y > 0) | (rng.random(20_000) < 0.1)
    learner = Forks(ForksSettings.practical(1, budget=50))
    learner.learn_many(events[kept], y[kept], np.where(y[kept] > 0, 1.0, 10.0))
    points = np.array([[-1.0], [0.0], [1.0]])
    np.testing.assert_allclose(learner.predict_many(points), points[:, 0] - 3.0, atol=0.6)


@pytest.mark.parametrize("weight", [-0.1, 1000.1, math.nan, math.inf, -math.inf, "heavy", None, [1.0]])
def test_a_weight_out_of_range_is_refused_by_name(weight: Any) -> None:
    learner = Forks(ForksSettings.practical(1))
    calls: list[Callable[[], object]] = [
        lambda: learner.learn_one([1.0], 1, weight),
        lambda: learner.learn_many([[1.0]], [1], [weight]),
        lambda: learner.predict_and_learn_many([[1.0]], [1], [weight]),
        lambda: learner.run([[1.0]], [1], [1], [weight]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="weight"):
            call()
    assert learner.updates == 0


@pytest.mark.parametrize("weights", [[], [1.0, 1.0], 1.0, [[1.0]]])
def test_there_is_a_weight_for_each_row(weights: Any) -> None:
    with pytest.raises(ValueError, match="weights must have shape"):
        Forks(ForksSettings.practical(1)).learn_many([[1.0]], [1], weights)
