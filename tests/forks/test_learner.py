from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest

from forks import Forks, ForksSettings, State
from forks.arrays import FloatArray


def xor_stream(events: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    X = np.random.default_rng(seed).uniform(-1, 1, size=(events, 2))
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)


def mistakes(scores: FloatArray, y: FloatArray) -> float:
    return float(np.mean((scores > 0) != (y > 0)))


def array(state: State, name: str) -> FloatArray:
    entry = state[name]
    assert isinstance(entry, np.ndarray)
    return entry


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_practical_learns_what_no_linear_function_can(loss: Any) -> None:
    X, y = xor_stream(3000)
    scores = Forks(ForksSettings.practical(2, width=1.0, loss=loss)).predict_and_learn_many(X, y)
    assert mistakes(scores[1000:], y[1000:]) < 0.05


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_paper_learns_what_no_linear_function_can(loss: Any) -> None:
    X, y = xor_stream(3000)
    settings = ForksSettings.paper(2, budget=100, width=0.5, cycle=1000, loss=loss)
    scores = Forks(settings).predict_and_learn_many(X, y)
    assert mistakes(scores[1000:], y[1000:]) < 0.2


def test_practical_is_no_worse_than_logistic_newton_on_a_linear_stream() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4))
    y = np.where(X @ [1.0, -2.0, 0.5, 0.0] + rng.logistic(size=4000) > 0.5, 1.0, -1.0)
    ideal = mistakes(X @ [1.0, -2.0, 0.5, 0.0] - 0.5, y)
    assert mistakes(Forks(ForksSettings.practical(4)).predict_and_learn_many(X, y), y) < ideal + 0.02


def test_probabilities_are_calibrated() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 2))
    p = 1 / (1 + np.exp(-2 * np.sin(2 * X[:, 0])))
    y = np.where(rng.uniform(size=6000) < p, 1.0, -1.0)
    scores = Forks(ForksSettings.practical(2, width=1.0, cycle=500)).predict_and_learn_many(X, y)
    predicted = 1 / (1 + np.exp(-scores[2000:]))
    assert np.mean(np.abs(predicted - p[2000:])) < 0.06


def test_regression_learns_a_curve() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, size=(3000, 1))
    y = np.sin(2 * X[:, 0])
    scores = Forks(ForksSettings.practical(1, width=0.5, loss="squared")).predict_and_learn_many(X, y)
    assert np.sqrt(np.mean((scores[1000:] - y[1000:]) ** 2)) < 0.05


def test_reset_recovers_from_flipped_labels_better_than_carry_over() -> None:
    X, y = xor_stream(6000)
    flipped = y * np.where(np.arange(6000) // 1000 % 2 == 0, 1.0, -1.0)

    def rate(*, carry_over: bool) -> float:
        settings = ForksSettings.paper(2, budget=100, width=0.5, cycle=100, carry_over=carry_over)
        return mistakes(Forks(settings).predict_and_learn_many(X, flipped)[1000:], flipped[1000:])

    assert rate(carry_over=False) < 0.2
    assert rate(carry_over=True) > rate(carry_over=False) + 0.05


def test_carry_over_forgets_less_than_reset_on_a_steady_stream() -> None:
    X, y = xor_stream(3000)

    def rate(*, carry_over: bool) -> float:
        settings = ForksSettings.practical(2, width=1.0, cycle=50, carry_over=carry_over)
        return mistakes(Forks(settings).predict_and_learn_many(X, y)[500:], y[500:])

    assert rate(carry_over=True) < rate(carry_over=False) / 2


def test_the_linear_part_may_have_a_prior_of_its_own() -> None:
    settings = ForksSettings.practical(2, budget=20, alpha=2.0, linear_alpha=30.0)
    prior = array(Forks(settings).state(), "inverse_hessian")
    assert (prior == np.diag([1 / 30] * 3 + [1 / 2] * settings.rank)).all()


def test_an_offset_is_the_score_of_a_learner_that_knows_nothing_else() -> None:
    X = np.array([[0.0, 0.5], [1.0, -3.0], [2.0, 1e6]])
    settings = ForksSettings.practical(2, offset_column=1, clip=4.0)
    assert Forks(settings).predict_many(X).tolist() == [0.5, -3.0, 4.0]


def test_a_learner_with_a_good_offset_is_better_from_the_start() -> None:
    X, y = xor_stream(300)
    known = np.column_stack([X, 3.0 * y])
    settings: dict[str, Any] = {"kernel_columns": (0, 2), "linear_columns": (0, 2)}
    without = Forks(ForksSettings.practical(3, **settings)).predict_and_learn_many(known, y)
    with_offset = Forks(ForksSettings.practical(3, **settings, offset_column=2)).predict_and_learn_many(
        known, y
    )
    assert mistakes(with_offset, y) == 0.0
    assert mistakes(without, y) > 0.05


def test_stage_one_stores_only_points_with_a_loss_and_ends_with_the_budget() -> None:
    learner = Forks(ForksSettings.paper(1, budget=4, landmarks=2, rank=1))
    near, far = [0.0], [100.0]
    assert learner.learn_one(near, 1) == 1.0
    for _ in range(10):
        learner.learn_one(near, 1)
    stored = len(array(learner.state(), "points"))
    assert stored == 4  # a step of 0.2 leaves a margin below 1 for more than three rounds
    assert learner.state()["stage"] == 2

    learner = Forks(ForksSettings.paper(1, budget=4, landmarks=2, rank=1, step=2.0))
    learner.learn_one(near, 1)
    assert learner.learn_one(near, 1) == 0.0
    learner.learn_one(far, 1)
    assert len(array(learner.state(), "points")) == 2


def test_the_round_after_the_budget_is_predicted_by_stage_one_and_begins_stage_two() -> None:
    X, y = xor_stream(11)
    learner = Forks(ForksSettings.paper(2, budget=10, landmarks=4, rank=2))
    learner.learn_many(X[:10], y[:10])
    assert learner.state()["stage"] == 1
    assert learner.predict_one(X[10]) != 0.0
    learner.learn_one(X[10], y[10])
    assert learner.state()["stage"] == 2


def test_the_papers_stored_set_grows_by_a_point_each_cycle() -> None:
    X, y = xor_stream(2000)
    learner = Forks(ForksSettings.paper(2, budget=20, width=0.5, cycle=100))
    learner.learn_many(X, y)
    changes = learner.state()["changes"]
    assert changes > 15
    assert len(array(learner.state(), "points")) == 20 + changes


def test_a_bounded_learner_keeps_the_newest_points_and_its_size() -> None:
    X, y = xor_stream(3000)
    learner = Forks(ForksSettings.practical(2, budget=20, cycle=10, standardize=False))
    learner.learn_many(X[:500], y[:500])
    size = {name: np.size(entry) for name, entry in learner.state().items()}
    learner.learn_many(X[500:], y[500:])
    assert {name: np.size(entry) for name, entry in learner.state().items()} == size
    stored = {tuple(point) for point in array(learner.state(), "points")}
    assert stored < {tuple(x) for x in X[-300:]}


def test_the_map_changes_twenty_times_as_often_at_first_and_then_less_and_less() -> None:
    rng = np.random.default_rng(5)
    learner = Forks(ForksSettings.practical(2, budget=20, cycle=100))
    changed = []
    for x in rng.uniform(-1, 1, size=(3_000, 2)):
        learner.learn_one(x, np.sign(x[0]))
        if learner.state().get("since_change") == 1:
            changed.append(learner.updates)
    gaps = dict(zip(changed[1:], np.diff(changed[1:]), strict=False))
    assert {gap for at, gap in gaps.items() if at < 90} == {5}
    assert all(gap == max(5, (at + gap - 1) // 20) for at, gap in gaps.items() if at < 1_900)
    assert {gap for at, gap in gaps.items() if at >= 2_000} == {100}


def test_the_first_cycles_are_not_longer_than_200_events() -> None:
    learner = Forks(ForksSettings.practical(2, budget=20, cycle=10_000))
    X, y = xor_stream(1_000)
    learner.learn_many(X[:20], y[:20])
    assert learner.health().map_changes == 0
    learner.learn_many(X[20:], y[20:])
    assert learner.health().map_changes == 980 // 200


def test_a_learner_restored_under_a_shorter_cycle_changes_its_map_at_the_next_learned_event() -> None:
    X, y = xor_stream(110)
    learner = Forks(ForksSettings.practical(2, budget=20, cycle=1000))
    learner.learn_many(X[:100], y[:100])
    restored = Forks.from_state(ForksSettings.practical(2, budget=20, cycle=1), learner.state())
    restored.learn_many(X[100:], y[100:])
    changes, before = restored.state()["changes"], learner.state()["changes"]
    assert changes - before == 10


def test_a_clipped_learner_never_scores_beyond_the_bound() -> None:
    X, y = xor_stream(600)
    learner = Forks(ForksSettings.practical(2, budget=20, cycle=30, clip=0.5))
    scores = learner.predict_and_learn_many(X, y)
    assert np.abs(scores).max() == 0.5
    assert np.abs(learner.predict_many(X)).max() <= 0.5


def test_a_stream_of_one_point_is_learned_without_trouble() -> None:
    for settings in (
        ForksSettings.practical(3, budget=10, cycle=3),
        ForksSettings.paper(3, budget=10, cycle=3),
    ):
        learner = Forks(settings)
        learner.learn_many(np.ones((100, 3)), np.ones(100))
        assert learner.predict_one([1.0, 1.0, 1.0]) > 0.5


@pytest.mark.parametrize(("largest", "standardize"), [(1e100, True), (1e6, False)])
def test_huge_values_leave_everything_finite(largest: float, standardize: bool) -> None:
    X = np.random.default_rng(0).choice([-largest, -1.0, 0.0, 1e-300, largest], size=(300, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    learner = Forks(ForksSettings.practical(3, budget=10, cycle=20, standardize=standardize))
    assert np.isfinite(learner.predict_and_learn_many(X, y)).all()
    assert all(np.isfinite(value).all() for value in learner.state().values())
    with pytest.raises(ValueError, match=re.escape(f"x must be finite and within +-{largest:g}")):
        learner.predict_one([0.0, 2 * largest, 0.0])


def test_updates_count_the_events_learned() -> None:
    X, y = xor_stream(50)
    learner = Forks(ForksSettings.practical(2, budget=10))
    learner.learn_many(X[:30], y[:30])
    learner.learn_one(X[30], y[30])
    assert learner.updates == 31
    assert learner.copy().updates == 31


def test_an_empty_batch_is_learned_and_changes_nothing() -> None:
    learner = Forks(ForksSettings.practical(2))
    assert learner.learn_many(np.empty((0, 2)), []).shape == (0,)
    assert learner.predict_many(np.empty((0, 2))).shape == (0,)
    assert learner.updates == 0


@pytest.mark.parametrize("events", [10, 60, 300])
def test_a_pickled_learner_goes_on_with_the_same_bits_over_changes_of_its_map(events: int) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(600, 2)), np.sign(rng.normal(size=600))
    learner = Forks(ForksSettings.practical(2, budget=30, cycle=20))
    learner.learn_many(X[:events], y[:events])
    copy = pickle.loads(pickle.dumps(learner))
    for each in (learner, copy):
        each.learn_many(X[events:], y[events:])
    expected, found = learner.state(), copy.state()
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
