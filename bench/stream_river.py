"""River's learners on a table, one event at a time.

The linear models, also those in the leaves of trees that predict numbers, have a column for each value of a
category, and standardised numbers. The trees take texts as they are. Mondrian forests take numbers only, so a
category is the number of its value there, in the order in which values came.
"""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from river import compose, forest, linear_model, preprocessing, tree

from bench.stream_figures import Run, log_odds
from bench.stream_tables import Table

SEED: Final = 1
PROGRESS: Final = 1_000
"""Events between two calls of the progress function."""


def _linear(model: Any) -> Any:
    columns = compose.SelectType(str) | preprocessing.OneHotEncoder(drop_zeros=True)
    return (columns + (compose.SelectType(numbers.Number) | preprocessing.StandardScaler())) | model


def _leaf() -> Any:
    return _linear(linear_model.LinearRegression())


def _coded(model: Any) -> Any:
    codes = compose.SelectType(str) | preprocessing.OrdinalEncoder()
    return (codes + compose.SelectType(numbers.Number)) | model


MODELS: Final[Mapping[str, tuple[Callable[[], Any], Callable[[], Any]]]] = MappingProxyType(
    {
        "river linear": (
            lambda: _linear(linear_model.LogisticRegression()),
            _leaf,
        ),
        "river hoeffding adaptive tree": (
            lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=SEED),
            lambda: tree.HoeffdingAdaptiveTreeRegressor(leaf_model=_leaf(), seed=SEED),
        ),
        "river adaptive random forest": (
            lambda: forest.ARFClassifier(seed=SEED),
            lambda: forest.ARFRegressor(leaf_model=_leaf(), seed=SEED),
        ),
        "river mondrian forest": (
            lambda: _coded(forest.AMFClassifier(seed=SEED)),
            lambda: _coded(forest.AMFRegressor(seed=SEED)),
        ),
    }
)
"""What makes a classifier and a regressor, by the name of the learner."""


def river_learners(progress: Callable[[int], None]) -> dict[str, Callable[[Table], Run]]:
    """Return what runs each of River's learners, by its name."""
    return {name: partial(_run, makers, progress) for name, makers in MODELS.items()}


def _run(
    makers: tuple[Callable[[], Any], Callable[[], Any]], progress: Callable[[int], None], table: Table
) -> Run:
    positive = table.positive
    model = makers[positive is None]()
    labels = (table.labels if positive is None else positive).tolist()
    predict = partial(_number if positive is None else _probability, model)
    rows, predicted, begin = list(_rows(table)), np.empty(len(table)), time.perf_counter()
    for number, (x, y) in enumerate(zip(rows, labels, strict=True)):
        predicted[number] = predict(x)
        model.learn_one(x, y)
        if number % PROGRESS == 0:
            progress(number)
    seconds = time.perf_counter() - begin
    return Run(predicted if positive is None else log_odds(predicted), seconds)


def _number(model: Any, x: Mapping[str, Any]) -> float:
    """Return what is predicted, 0 where the model knows no label: a Mondrian forest then says nothing."""
    found: float | None = model.predict_one(x)
    return 0.0 if found is None else found


def _probability(model: Any, x: Mapping[str, Any]) -> float:
    """Return the probability of a positive label, a half where the model knows no label."""
    found: dict[bool, float] = model.predict_proba_one(x)
    return found.get(True, 1.0 - found.get(False, 0.5))


def _rows(table: Table) -> Iterator[dict[str, Any]]:
    columns: dict[str, Sequence[Any]] = {**table.entities, **table.categories}
    columns |= {name: each.tolist() for name, each in table.features().items()}
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))
