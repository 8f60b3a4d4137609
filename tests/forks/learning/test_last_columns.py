"""Events of which only the last columns are given have the same results as whole rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forks import Forks, ForksSettings, LastColumns

EVENTS = 600
SEEN = 4
"""The first column that some part of the learners sees."""
SETTINGS: dict[str, dict[str, Any]] = {
    "sum kernel": {"linear_columns": (4, 9), "kernel_columns": (5, 10)},
    "kernel alone": {"sum_kernel": False, "kernel_columns": (4, 10)},
    "offset": {"linear_columns": (5, 9), "kernel_columns": (5, 10), "offset_column": 4},
    "not standardised": {"standardize": False, "linear_columns": (4, 9), "kernel_columns": (5, 10)},
}


@pytest.fixture(params=SETTINGS)
def settings(request: pytest.FixtureRequest) -> ForksSettings:
    changes = {"budget": 50, "cycle": 20, "tracking": False, **SETTINGS[request.param]}
    return ForksSettings.practical(10, **changes)


@pytest.mark.parametrize("first", [0, 2, SEEN])
def test_results_are_those_of_whole_rows(settings: ForksSettings, first: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(EVENTS, 10))
    y = np.where(X[:, 5] * X[:, 8] + rng.normal(size=EVENTS) > 0.0, 1.0, -1.0)
    order = np.concatenate([np.arange(EVENTS), rng.permutation(EVENTS) + EVENTS])
    rows = X.copy()
    rows[:, :first] = 0.0
    whole, part = Forks(settings), Forks(settings)
    assert (part.run(LastColumns(X[:, first:]), y, order) == whole.run(rows, y, order)).all()
    assert (part.learn_many(LastColumns(X[:, first:]), y) == whole.learn_many(rows, y)).all()
    assert (part.predict_many(LastColumns(X[:, first:])) == whole.predict_many(X)).all()
    assert (part.variances(LastColumns(X[:, first:])) == whole.variances(X)).all()
    states = [
        {name: np.asarray(value).tobytes() for name, value in of.state().items()} for of in (part, whole)
    ]
    assert states[0] == states[1]


def test_columns_that_the_learner_sees_have_to_be_given(settings: ForksSettings) -> None:
    assert settings.first_seen == SEEN
    with pytest.raises(ValueError, match=r"the last 5 columns, and the learner sees columns from 4 to 10"):
        Forks(settings).predict_many(LastColumns(np.zeros((1, 5))))
    with pytest.raises(ValueError, match=r"the last 11 columns"):
        Forks(settings).predict_many(LastColumns(np.zeros((1, 11))))


def test_entity_blocks_need_whole_rows() -> None:
    blocks = {"linear_columns": (7, 10), "kernel_columns": (4, 10), "entity_blocks": ((4, 6), (6, 7))}
    settings = ForksSettings.practical(10, **blocks)  # type: ignore[arg-type]  # not one type for all
    with pytest.raises(ValueError, match="entity_blocks takes whole rows"):
        Forks(settings).predict_many(LastColumns(np.zeros((1, 6))))


def test_other_shapes_and_values_are_refused(settings: ForksSettings) -> None:
    learner = Forks(settings)
    with pytest.raises(ValueError, match=r"X must have shape \(n, columns\), not \(6,\)"):
        learner.predict_many(LastColumns(np.zeros(6)))
    with pytest.raises(ValueError, match="X must be finite"):
        learner.predict_many(LastColumns([[0.0] * 5 + [float("nan")]]))
    with pytest.raises(ValueError, match="X must be numbers"):
        learner.predict_many(LastColumns([["a"] * 6]))
