"""Stored points near an event, and which events they were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks import Forks, ForksSettings
from tests.support.examples import examples


def settings(preset: str) -> ForksSettings:
    make = ForksSettings.paper if preset == "paper" else ForksSettings.practical
    return make(2, budget=6, landmarks=3, rank=2, cycle=4, width=1.5)


@pytest.mark.parametrize("preset", ["paper", "practical"])
@examples(30)
@given(st.integers(0, 60), st.integers(1, 9), st.integers(0, 1_000))
def test_the_nearest_points_are_those_of_the_state(preset: str, events: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    learner = Forks(settings(preset))
    X, y = rng.normal(size=(events, 2)), rng.choice([-1.0, 1.0], events)
    learner.learn_many(X, y)
    x = rng.normal(size=2)
    before = learner.state()
    found = learner.nearest_one(x, count)
    state, used = learner.state(), learner.settings
    assert all(np.array_equal(value, before[name]) for name, value in state.items())
    point = x
    if used.standardize:
        mean, squares = np.asarray(state["mean"]), np.asarray(state["squares"])
        deviation = np.sqrt(squares / max(events, 1))
        point = np.clip((x - mean) / deviation, -10.0, 10.0) if events > 1 else np.zeros(2)
    points = np.asarray(state["points"])
    assert len(found) == min(count, len(points))
    distances = np.sort(np.linalg.norm(points - point, axis=1))[:count]
    assert [each.distance for each in found] == pytest.approx(distances.tolist(), rel=1e-6)
    kernels = np.exp(-(distances**2) / (2 * used.width**2))
    assert [each.kernel for each in found] == pytest.approx(kernels.tolist(), rel=1e-6)


@pytest.mark.parametrize("preset", ["paper", "practical"])
def test_points_are_traced_to_their_events_until_a_learner_is_restored(preset: str) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(80, 2)), rng.choice([-1.0, 1.0], 80)
    learner, together = Forks(settings(preset)), Forks(settings(preset))
    stored: list[tuple[int, bytes]] = []
    for number, (x, label) in enumerate(zip(X, y, strict=True)):
        known = {bytes(point) for _, point in stored}
        learner.learn_one(x, label)
        points = [bytes(point) for point in np.asarray(learner.state()["points"])]
        stored += [(number, point) for point in points if point not in known]
        stored = [each for each in stored if each[1] in points]
    together.learn_many(X, y)
    expected = tuple(number for number, _ in stored)
    assert learner.stored_events == together.stored_events == expected
    assert len(expected) >= 6
    restored = Forks.from_state(learner.settings, learner.state())
    assert restored.stored_events == (None,) * len(expected)
    assert {each.learned_before for each in restored.nearest_one(X[0], 9)} == {None}
    restored.learn_many(X, y)
    late = restored.stored_events[-1]
    assert late is not None
    assert late >= 80
