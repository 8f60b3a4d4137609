from __future__ import annotations

import numpy as np
import pytest

from forks import Forks, ForksSettings
from tests.forks.test_learner import xor_stream


def settings(refresh: int = 5) -> ForksSettings:
    return ForksSettings.practical(
        2, budget=30, landmarks=10, sketch_size=16, rank=8, cycle=20, width=1.0, refresh=refresh
    )


def test_stage_1_has_points_and_no_sketch() -> None:
    learner = Forks(settings())
    X, y = xor_stream(10)
    learner.learn_many(X, y)
    health = learner.health()
    assert (health.stage, health.updates, health.stored_points) == (1, 10, 10)
    assert (health.singular_values, health.rank, health.condition) == ((), 0, None)


def test_stage_2_agrees_with_the_state_and_with_a_restored_learner() -> None:
    learner = Forks(settings())
    learner.learn_many(*xor_stream(500))
    health, state = learner.health(), learner.state()
    assert health.stage == 2
    assert health.stored_points == len(state["points"]) == 30  # type: ignore[arg-type]  # an array
    expected = np.sort(np.abs(np.asarray(state["eigenvalues"])))[::-1]
    assert health.singular_values == pytest.approx(expected)
    assert health.map_changes == health.evictions == state["changes"]
    assert health.updates_since_map_change == state["since_change"]
    assert health.condition == pytest.approx(expected[0] / expected[health.rank - 1])
    assert Forks.from_state(learner.settings, state).health() == health


def test_refreshes_are_counted_from_the_last_one() -> None:
    learner, seen = Forks(settings(refresh=5)), set()
    X, y = xor_stream(600)
    for x, label in zip(X, y, strict=True):
        learner.learn_one(x, label)
        health = learner.health()
        assert health.changes_since_refresh == health.map_changes % 5
        seen.add(health.changes_since_refresh)
    assert seen == {0, 1, 2, 3, 4}
    never = Forks(settings(refresh=0))
    never.learn_many(X, y)
    assert never.health().changes_since_refresh == never.health().map_changes > 5


def test_looking_changes_no_bit() -> None:
    X, y = xor_stream(300)
    watched, alone = Forks(settings()), Forks(settings())
    for x, label in zip(X, y, strict=True):
        watched.health()
        watched.learn_one(x, label)
        alone.learn_one(x, label)
    assert (watched.predict_many(X) == alone.predict_many(X)).all()
