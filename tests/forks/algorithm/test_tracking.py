"""Tracking: against a plain version by its equations, and on streams that change and that do not."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks import Forks, ForksSettings, State
from forks.algorithm.tracking import NEW, SETTLED, UNCHANGED, Tracker, corrected_scores, track
from forks.arrays import FloatArray
from tests.support.examples import examples

SMALL: dict[str, Any] = {"budget": 20, "cycle": 40}


def likelihood(label: float, score: float) -> float:
    return 1.0 / (1.0 + math.exp(-label * score))


class PlainTracker:
    """The equations of tracking, for own scores and features that are given."""

    def __init__(self, features: int, clip: float) -> None:
        self.clip = clip
        self.slow, self.fast, self.renewed = np.zeros((3, features))
        self.precision: FloatArray | None = None
        self.may_start = True
        self.shares = np.array([0.97, 0.01, 0.01, 0.01])

    def scores(self, own: float, z: FloatArray) -> FloatArray:
        corrections = np.array([np.zeros(len(z)), self.slow, self.fast, self.renewed])
        return np.clip(own + corrections @ z, -self.clip, self.clip)

    def score(self, own: float, z: FloatArray) -> float:
        return float(self.shares @ self.scores(own, z))

    def learn(self, own: float, z: FloatArray, label: float, weight: float) -> None:
        """Learn a label; a weight above 1 is that many steps of slow and renewed, and one of fast."""
        scores = self.scores(own, z)
        p = np.array([likelihood(label, score) for score in scores])
        posterior = self.shares * p**weight / (self.shares @ p**weight)
        self.shares = 0.999 * posterior + 0.001 * np.array([0.97, 0.01, 0.01, 0.01])
        reach = min(weight, 1.0) * max(0.0, 1.0 - label * scores[2])
        self.fast = 0.99 * self.fast + reach * label * z / (z @ z)
        slow, renewed = scores[1], scores[3]
        for part in [1.0] * int(weight) + [weight % 1.0]:
            step = part * 0.3 * (1.0 - likelihood(label, slow)) * label
            self.slow, slow = self.slow + step * z / (z @ z), slow + step
            if self.precision is not None:
                likely = likelihood(label, renewed)
                self.precision += part * likely * (1.0 - likely) * np.outer(z, z)
                newton = part * (1.0 - likely) * label * np.linalg.solve(self.precision, z)
                self.renewed, renewed = self.renewed + newton, renewed + newton @ z
        quick = self.shares[1] + self.shares[2]
        if self.may_start and quick > 0.5:
            self.may_start, self.precision, self.renewed = False, 2.0 * np.eye(len(z)), np.zeros(len(z))
        elif self.precision is not None and self.shares[0] > 0.95:
            self.may_start, self.precision, self.renewed = True, None, np.zeros(len(z))
        elif quick < 0.05:
            self.may_start = True


def flipped(blocks: int, rounds: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return an adversary's stream: one row for each block, with the opposite label in every second block."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(blocks, 6))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] > 0, 1.0, -1.0) * np.tile([1.0, -1.0], blocks // 2)
    return np.repeat(X, rounds, axis=0), np.repeat(y, rounds)


def turning(phase: int, phases: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return a stream with noisy labels of a linear function that is another one in each phase."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(phase * phases, 6))
    w = rng.normal(size=(phases, 6))
    w *= 2.5 / np.linalg.norm(w, axis=1, keepdims=True)
    odds = np.einsum("ij,ij->i", X, np.repeat(w, phase, axis=0))
    return X, np.where(rng.random(len(X)) < 1.0 / (1.0 + np.exp(-odds)), 1.0, -1.0)


def wrong(X: FloatArray, y: FloatArray, **changes: Any) -> FloatArray:
    scores = Forks(ForksSettings.practical(X.shape[1], **changes)).predict_and_learn_many(X, y)
    mistakes: FloatArray = ((scores > 0.0) != (y > 0.0)).astype(np.float64)
    return mistakes


def learn(tracker: Tracker, own: float, z: FloatArray, label: float, clip: float) -> None:
    scores = corrected_scores(True, own, z, clip, tracker.corrections, tracker.shares, tracker.phase)
    track(label, own, *scores[1:], z, *tracker, np.empty(len(z)))


def array(state: State, name: str) -> FloatArray:
    entry = state[name]
    assert isinstance(entry, np.ndarray)
    return entry


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset_column", [None, 2])
def test_scores_are_those_of_the_equations(offset_column: int | None, weighted: bool) -> None:
    """The own scores are those of a learner without tracking, in both stages."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 3)) * [1.0, 5.0, 0.5] + [0.0, 20.0, 0.0]
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=1500) > 0, 1.0, -1.0)
    y[300:500] *= -1.0
    y[500:] = np.where(X[500:, 2] + 0.2 * rng.normal(size=1000) > 0, 1.0, -1.0)
    phases = set()
    settings: dict[str, Any] = SMALL | {"clip": 3.0, "offset_column": offset_column}
    tracking = Forks(ForksSettings.practical(3, **settings))
    without = Forks(ForksSettings.practical(3, **settings, tracking=False))
    plain = PlainTracker(4, 3.0)
    weights = rng.choice([0.25, 1.0, 1.5, 3.0], size=1500) if weighted else np.ones(1500)
    for i, (x, label, weight) in enumerate(zip(X, y, weights, strict=True)):
        spread = X[:i].std(axis=0) if i else np.zeros(3)
        safe = np.where(spread > 0, spread, 1.0)
        centred = (x - X[:i].mean(axis=0)) / safe if i else np.zeros(3)
        z = np.concatenate([[1.0], np.clip(np.where(spread > 0, centred, 0.0), -10, 10)])
        expected = plain.score(without.predict_one(x), z)
        assert tracking.predict_one(x) == pytest.approx(expected, rel=1e-9, abs=1e-11)
        # Learning scores once more, under the map that the event may change.
        tracking.learn_one(x, label, weight)
        plain.learn(_own_score_of_the_step(without, x, label, weight), z, label, weight)
        state = tracking.state()
        np.testing.assert_allclose(array(state, "shares"), plain.shares, rtol=1e-6, err_msg=f"event {i}")
        phases.add(array(state, "phase")[0])
    assert phases == {UNCHANGED, NEW, SETTLED}
    corrections = [plain.slow, plain.fast, plain.renewed]
    np.testing.assert_allclose(array(tracking.state(), "corrections"), corrections, rtol=1e-6, atol=1e-12)


def _own_score_of_the_step(learner: Forks, x: FloatArray, label: float, weight: float) -> float:
    """Learn a label; return the score of the step, which a change of the map comes before."""
    learner.learn_one(x, label, weight)
    return float(learner._stages._own_score[0])


def test_without_tracking_there_is_one_score_and_no_state() -> None:
    arrays = (np.ones((3, 1)), np.ones(4), np.array([SETTLED]))
    assert corrected_scores(False, 0.7, np.ones(1), 10.0, *arrays) == (0.7, 0.7, 0.7, 0.7)
    settings = ForksSettings.practical(6, tracking=False)
    assert not Tracker._fields & Forks(settings).state().keys()
    assert set(Tracker._fields) < Forks(ForksSettings.practical(6)).state().keys()


def test_the_learner_itself_is_as_without_tracking() -> None:
    X, y = turning(300, 2)
    tracking, without = (
        Forks(ForksSettings.practical(6, **SMALL, tracking=tracking)) for tracking in (True, False)
    )
    tracking.learn_many(X, y)
    without.learn_many(X, y)
    state = tracking.state()
    assert state.keys() == {*without.state(), *Tracker._fields}
    for name, entry in without.state().items():
        assert np.asarray(state[name]).tobytes() == np.asarray(entry).tobytes(), name


def test_where_labels_have_the_own_probabilities_the_own_score_keeps_the_weight() -> None:
    rng = np.random.default_rng(5)
    tracker = Tracker.initial(5)
    own_share = []
    for _ in range(20_000):
        z = np.concatenate([[1.0], rng.normal(size=4)])
        own = float(rng.normal(scale=2.0))
        label = 1.0 if rng.random() < likelihood(1.0, own) else -1.0
        learn(tracker, own, z, label, 10.0)
        own_share.append(tracker.shares[0])
        assert tracker.shares.sum() == pytest.approx(1.0)
    assert np.mean(own_share) > 0.98


def test_scores_without_bounds_keep_the_tracker_finite() -> None:
    tracker = Tracker.initial(1)
    z = np.ones(1)
    for label in (1.0, -1.0, 1.0, 1.0, -1.0) * 20:
        own = 1e6 * label * (-1.0 if tracker.shares[0] > 0.5 else 1.0)
        learn(tracker, own, z, label, math.inf)
        for entry in tracker:
            assert np.isfinite(entry).all()
        assert (tracker.shares > 0.0).all()


CHANGING_X, CHANGING_Y = (
    np.concatenate(parts) for parts in zip(turning(250, 3, seed=1), flipped(20, 10), strict=True)
)


@examples(10)
@given(st.sets(st.integers(0, len(CHANGING_Y)), max_size=8))
def test_batches_and_restored_states_do_not_show_where_the_stream_changes(cuts: set[int]) -> None:
    settings = ForksSettings.practical(6, **SMALL)
    whole = Forks(settings)
    expected = whole.predict_and_learn_many(CHANGING_X, CHANGING_Y)
    learner, scores = Forks(settings), []
    for start, stop in pairwise([0, *sorted(cuts), len(CHANGING_Y)]):
        learner = learner.copy()
        part = slice(start, stop)
        scores.append(learner.predict_and_learn_many(CHANGING_X[part], CHANGING_Y[part]))
    assert (np.concatenate(scores) == expected).all()
    assert {name: np.asarray(entry).tobytes() for name, entry in learner.state().items()} == {
        name: np.asarray(entry).tobytes() for name, entry in whole.state().items()
    }


def test_one_by_one_has_the_bits_of_batches_where_the_stream_changes() -> None:
    settings = ForksSettings.practical(6, **SMALL)
    expected = Forks(settings).predict_and_learn_many(CHANGING_X, CHANGING_Y)
    learner, shares = Forks(settings), []
    for x, label, score in zip(CHANGING_X, CHANGING_Y, expected, strict=True):
        assert learner.predict_one(x) == score
        learner.learn_one(x, label)
        shares.append(array(learner.state(), "shares"))
    assert (np.max(shares, axis=0) > 0.4).all()  # each of the four counts at some time


def test_where_labels_flip_mistakes_are_hardly_more_than_the_first_of_each_block() -> None:
    X, y = flipped(400, 10)
    assert wrong(X, y, tracking=False).mean() > 0.2
    mistakes = wrong(X, y).reshape(400, 10)
    assert mistakes.mean() < 0.08
    assert mistakes[:, 3:].mean() < 0.01


def test_after_an_abrupt_change_mistakes_are_as_before_within_a_thousand_events() -> None:
    X, y = turning(4000, 4)
    tracking, without = (wrong(X, y, tracking=tracking).reshape(4, 4000) for tracking in (True, False))
    left = tracking[1:, 500:1000].mean(axis=1) - tracking[:-1, 2000:].mean(axis=1)
    assert (left < 0.04).all()
    assert left.mean() < 0.01
    assert (without[1:, 500:1000].mean(axis=1) - without[:-1, 2000:].mean(axis=1)).mean() > 0.1


def test_a_quiet_stream_is_predicted_as_without_tracking() -> None:
    X, y = turning(12_000, 1)
    tracking, without = wrong(X, y), wrong(X, y, tracking=False)
    assert abs(tracking.mean() - without.mean()) < 0.001
    assert (tracking != without).mean() < 0.005


def test_after_a_change_the_renewed_correction_leads_until_the_learner_has_learned_it() -> None:
    X, y = turning(2000, 2)
    X, y = np.concatenate([X, X[2000:]]), np.concatenate([y, y[2000:]])
    learner = Forks(ForksSettings.practical(6, memory=2000))
    phases, renewed = [], []
    for start in range(0, len(y), 100):
        learner.learn_many(X[start : start + 100], y[start : start + 100])
        phases.append(array(learner.state(), "phase")[0])
        renewed.append(array(learner.state(), "shares")[3])
    assert phases[19] == UNCHANGED
    assert min(renewed[21:25]) > 0.5
    assert phases[-1] == UNCHANGED
    assert not array(learner.state(), "corrections")[2].any()
    assert not array(learner.state(), "covariance").any()
