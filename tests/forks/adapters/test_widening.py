from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from forks import Forks, ForksSettings
from forks.adapters.widening import widened

RNG = np.random.default_rng(5)
X = RNG.normal([0.0, 3.0, 0.0, 0.0], size=(120, 4))
Y = np.where(X[:, 0] * X[:, 1] + X[:, 3] > 0, 1.0, -1.0)

SIZES: dict[str, Any] = {"budget": 20, "cycle": 7, "width": 3.0}
PRESETS: dict[str, Callable[[int], ForksSettings]] = {
    "practical": lambda dimension: ForksSettings.practical(dimension, **SIZES),
    "practical, reset": lambda dimension: ForksSettings.practical(dimension, carry_over=False, **SIZES),
    "practical, no tracking": lambda dimension: ForksSettings.practical(dimension, tracking=False, **SIZES),
    "paper": lambda dimension: ForksSettings.paper(dimension, **SIZES),
}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("events", [0, 1, 12, 20, 21, 60])
def test_new_columns_are_as_if_they_had_been_zero_all_along(preset: str, events: int) -> None:
    settings = PRESETS[preset]
    narrow, expected = Forks(settings(2)), Forks(settings(4))
    narrow.learn_many(X[:events, :2], Y[:events])
    expected.learn_many(np.pad(X[:events, :2], ((0, 0), (0, 2))), Y[:events])
    learner = widened(narrow, 4)
    # Sums of different lengths are rounded differently, so the bits differ.
    np.testing.assert_allclose(
        learner.predict_and_learn_many(X[events:], Y[events:]),
        expected.predict_and_learn_many(X[events:], Y[events:]),
        rtol=1e-6,
        atol=1e-8,
    )
    assert learner.updates == len(X)


def test_a_learner_widened_by_nothing_is_the_same() -> None:
    learner = Forks(PRESETS["practical"](4))
    learner.learn_many(X, Y)
    assert (widened(learner, 4).predict_many(X) == learner.predict_many(X)).all()
