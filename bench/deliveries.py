"""Errors on invented deliveries, whose labels are minutes, beside running means and a least-squares fit.

Each seed is another world. A label is known when its order arrives, as through Kafka. The fit is a linear
function of the same features by recursive least squares with a ridge of 1, which forgets nothing. The prior
of FORKS was chosen on worlds 11 to 13.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from bench.options import Options
from bench.summary import mean_and_error
from forks.arrays import FloatArray, IntArray
from forks.validation import mean_absolute_error
from pipeline.config.settings import Config
from pipeline.features.regression import RegressionTarget
from pipeline.model.columns import InteractionColumns
from pipeline.model.factory import ModelFactory
from pipeline.sources.synth.deliveries import draw_deliveries
from pipeline.sources.synth.size import Size

RUNS: Final = 5
"""Worlds, unless their number is given."""
RIDGE: Final = 1.0


class _Interaction(NamedTuple):
    """What is known of an order when it is placed."""

    feature_0: float
    feature_1: float
    feature_2: bool


def run(options: Options) -> dict[str, Any]:
    """Return mean absolute errors by method: mean over the worlds, and its standard error."""
    errors: dict[str, list[float]] = {}
    for seed in range(1, (options.runs or RUNS) + 1):
        for name, error in errors_of(Size(events=options.events or Size.events, seed=seed)).items():
            errors.setdefault(name, []).append(error)
        options.say(f"world {seed}: " + ", ".join(f"{name} {each[-1]:.3f}" for name, each in errors.items()))
    return {"mae": {name: mean_and_error(each) for name, each in errors.items()}}


def errors_of(size: Size) -> dict[str, float]:
    """Return the mean absolute error of each method in one world."""
    text = files("pipeline.config").joinpath("streams/deliveries.toml").read_text("utf-8")
    model = ModelFactory(Config.model_validate({"stream": tomllib.loads(text)})).new_model()
    frame, target = draw_deliveries(size), model.target
    assert isinstance(target, RegressionTarget)
    times, arrivals = (_milliseconds(frame[name]) for name in ("ordered_at", "arrived_at"))
    minutes, order = frame["minutes"].to_numpy(), _order(times, arrivals)
    known: list[Any] = [
        _Interaction(*row) for row in frame.select("distance_km", "dishes", "rain").iter_rows()
    ]
    values = model.features.event.values(known, times)
    columns = InteractionColumns((frame["courier"].to_list(), frame["restaurant"].to_list()), times)
    ran = model.run(order, columns, np.empty((0, len(model.features))), minutes, values)
    mean = _running_mean(order, minutes, target.threshold)
    entities = [
        target.threshold + 2 * target.cap * (ran.features[:, place] - 0.5)
        for place in model.features.places("value_mean")
    ]
    predicted = {
        "forks": np.array(target.predictions(ran.scores)),
        "least_squares": _least_squares(order, ran.features, minutes - target.threshold) + target.threshold,
        "running_means": entities[0] + entities[1] - mean,
        "running_mean": mean,
    }
    labels = np.array(target.labels(minutes))
    return {name: mean_absolute_error(each, labels) for name, each in predicted.items()}


def _milliseconds(texts: pl.Series) -> IntArray:
    times: IntArray = texts.str.to_datetime(time_unit="ms").dt.timestamp("ms").to_numpy()
    return times


def _order(times: IntArray, arrivals: IntArray) -> IntArray:
    """Return the steps by time, labels first on ties: i is order i, n + i its arrival."""
    n = len(times)
    later = np.concatenate([np.ones(n), np.zeros(n)])
    order: IntArray = np.lexsort((later, np.concatenate([times, arrivals]))).astype(np.int64)
    return order


def _running_mean(order: IntArray, labels: FloatArray, offset: float) -> FloatArray:
    """Return the mean of the labels known at each event, and of the offset as one more."""
    n, total, count = len(labels), offset, 1
    found = np.empty(n)
    for step in order.tolist():
        if step < n:
            found[step] = total / count
        else:
            total, count = total + labels[step - n], count + 1
    return found


def _least_squares(order: IntArray, X: FloatArray, y: FloatArray) -> FloatArray:
    """Return the predictions of recursive least squares, each made of the labels known at its event."""
    n, columns = len(y), X.shape[1] + 1
    rows = np.column_stack([X, np.ones(n)])
    inverse, weights, found = np.eye(columns) / RIDGE, np.zeros(columns), np.empty(n)
    for step in order.tolist():
        if step < n:
            found[step] = rows[step] @ weights
            continue
        x = rows[step - n]
        gain = inverse @ x
        gain /= 1.0 + x @ gain
        weights += gain * (y[step - n] - x @ weights)
        inverse -= np.outer(gain, x @ inverse)
    return found
