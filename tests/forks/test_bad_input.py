"""Input that is not accepted is named in the error, and changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forks import Forks, ForksSettings

PRACTICAL = ForksSettings.practical(3, budget=10, cycle=5)


def trained(events: int = 40) -> Forks:
    rng = np.random.default_rng(0)
    learner = Forks(PRACTICAL)
    learner.learn_many(rng.normal(size=(events, 3)), rng.choice([-1.0, 1.0], size=events))
    return learner


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, 2.0], r"x must have shape \(3,\), not \(2,\)"),
        ([[1.0, 2.0, 3.0]], r"x must have shape \(3,\), not \(1, 3\)"),
        ([1.0, np.nan, 3.0], "x must be finite"),
        ([1.0, 2.0, -np.inf], "x must be finite"),
        ([1.0, 2.0, 1e101], r"within \+-1e\+100"),
        (["a", "b", "c"], "x must be numbers"),
        ([1.0, 2.0, 10**400], "x must be numbers"),
        ([1.0, None, {}], "x must be numbers"),
    ],
)
def test_vectors(x: Any, message: str) -> None:
    learner = trained()
    with pytest.raises(ValueError, match=message):
        learner.predict_one(x)
    with pytest.raises(ValueError, match=message):
        learner.learn_one(x, 1)
    assert learner.updates == 40


@pytest.mark.parametrize("y", [0, 2, 0.5, -1.5, np.nan, np.inf, 10**400, "yes", None])
def test_labels(y: Any) -> None:
    learner = trained()
    before = learner.predict_one([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"^y must be"):
        learner.learn_one([1.0, 2.0, 3.0], y)
    assert learner.predict_one([1.0, 2.0, 3.0]) == before
    assert learner.updates == 40


def test_labels_of_a_regression() -> None:
    learner = Forks(ForksSettings.practical(3, loss="squared"))
    learner.learn_one([1.0, 2.0, 3.0], 0.3)
    for y in (np.nan, np.inf, 1e101):
        with pytest.raises(ValueError, match=r"^y must be finite"):
            learner.learn_one([1.0, 2.0, 3.0], y)


def test_nothing_of_a_batch_is_learned_if_one_of_it_is_not_accepted() -> None:
    learner = trained()
    X, y = np.ones((4, 3)), np.ones(4)
    bad_X, bad_y = X.copy(), y.copy()
    bad_X[2, 1], bad_y[3] = np.nan, 0.0
    with pytest.raises(ValueError, match="X must be finite"):
        learner.learn_many(bad_X, y)
    with pytest.raises(ValueError, match=r"y\[3\] must be -1 or \+1"):
        learner.learn_many(X, bad_y)
    with pytest.raises(ValueError, match=r"y must have shape \(4,\)"):
        learner.learn_many(X, y[:3])
    with pytest.raises(ValueError, match=r"X must have shape \(n, 3\)"):
        learner.predict_many(X[:, :2])
    assert learner.updates == 40


def test_run_checks_the_labels_that_it_learns_and_names_the_wrong_one() -> None:
    learner = trained()
    X, y = np.ones((3, 3)), [1.0, 0.5, -1.0]
    with pytest.raises(ValueError, match=r"y\[1\] must be -1 or \+1"):
        learner.run(X, y, [0, 3, 4])
    with pytest.raises(ValueError, match=r"order must be steps from 0 to 5, for 3 events"):
        learner.run(X, y, [0, 6])
    with pytest.raises(
        ValueError, match=r"order must be integers of shape \(steps,\), not float64 of \(1,\)"
    ):
        learner.run(X, y, [0.0])
    assert learner.updates == 40
    learner.run(X, y, [5, 1, 3])
    assert learner.updates == 42


@pytest.mark.parametrize("events", [5, 40])
def test_a_state_that_lacks_an_entry(events: int) -> None:
    state = trained(events).state()
    for name in state:
        partial = {key: value for key, value in state.items() if key != name}
        with pytest.raises(ValueError, match=f"no entry '{name}'"):
            Forks.from_state(PRACTICAL, partial)


@pytest.mark.parametrize("events", [5, 40])
def test_a_state_with_an_entry_of_another_type_or_shape(events: int) -> None:
    state = trained(events).state()
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            wrong: list[Any] = [value.astype(np.float32), value[..., None], value.tolist()]
        else:
            wrong = [-1, "1", 0.5]
        for entry in wrong:
            with pytest.raises(ValueError, match=f"'{name}'"):
                Forks.from_state(PRACTICAL, state | {name: entry})


def test_a_state_made_with_other_settings() -> None:
    with pytest.raises(ValueError, match=r"state\['mean'\] has shape \(3,\)"):
        Forks.from_state(ForksSettings.practical(4, budget=10), trained().state())
    with pytest.raises(ValueError, match="these settings ask for"):
        Forks.from_state(ForksSettings.practical(3, budget=12, rank=2), trained().state())
