"""Mistakes on real KuaiRand rows, whose times are real: with each kind of running features, beside rivals.

The fading of the effects was chosen on the first week, and which features stand beside them on both. The
constants of the rival, the online Newton step, are those that are best on the first week. The stream of its
own declares features of the event, which are known when a video is shown, its duration and the hour, and
running features, all of which were chosen on the first week. Labels come at once, as most come within
seconds, or delayed by the play. A label is a watch ratio of 1.5 or 0 here: the stream has none for its
targets.
"""

from __future__ import annotations

from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from bench import logistic_newton
from bench.options import Options
from forks import Forks
from forks.arrays import BoolArray, FloatArray, IntArray
from forks.validation import auc, calibration_error, log_loss
from pipeline.config.feature_layout import ADJUSTED, FeatureKind
from pipeline.config.settings import Learner
from pipeline.config.stream import KUAIREC, Stream
from pipeline.features.feature_set import FEATURES, FeatureSet
from pipeline.features.statistics import RunningStatistics
from pipeline.model.contexts import ContextLayout
from pipeline.model.learner_settings import learner_settings
from pipeline.sources.schedule import merge_by_time

TARGETS: Final = ("label", "long_view", "is_click")
WEEK: Final = 7 * 86_400_000
"""Milliseconds."""
RATIO: Final = 1.5
"""Watch ratio of a positive label."""
STREAM: Final = Stream.model_validate(
    KUAIREC.model_dump(mode="json")
    | {
        "features": {
            "duration": {"kind": "number", "field": "/duration_ms", "log": True},
            "hour": {"kind": "hour", "utc_offset": "+08:00"},
        },
        "effects": ["user_id", "video_id"],
        "running": {
            "user_id": {"half_life": "10m", "features": [*ADJUSTED, "recent_residual", "log_recent_count"]},
            "video_id": {"half_life": "1d", "features": [*ADJUSTED, "log_recent_count"]},
            "length": {"of": ["duration"], "features": ["label_mean", "log_count"]},
            "taste": {
                "of": ["user_id", "duration"],
                "leans_on": "length",
                "features": ["leaning_label_mean", "log_count"],
            },
        },
    }
)
"""KuaiRand's stream, with what is known of an event."""


def run(options: Options) -> dict[str, Any]:
    """Return figures by target, learner and features, and week."""
    frame, second = rows_by_time(options)
    found: dict[str, Any] = {"events": frame.height, "in_first_week": second}
    for target in TARGETS:
        labels = frame[target].to_numpy() == 1
        positive = float(labels.mean())
        found[target] = {"majority": round(100.0 * min(positive, 1.0 - positive), 2)}
        contenders = _contenders(frame, labels, second)
        for name, scores in contenders.items():
            found[target][name] = {
                "first_week": _figures(scores[:second], labels[:second]),
                "second_week": _figures(scores[second:], labels[second:]),
                "all": _figures(scores, labels),
            }
            options.say(f"{target}, {name}: {found[target][name]}")
        own, newton = (contenders[name][second:] for name in ("effects", "newton"))
        found[target]["effects_less_newton"] = _difference(own, newton, labels[second:])
        declared, effects = (contenders[f"{name}_delayed"][second:] for name in ("declared", "effects"))
        found[target]["declared_less_effects_delayed"] = _difference(declared, effects, labels[second:])
        options.say(f"{target}, second week, FORKS less newton: {found[target]['effects_less_newton']}")
    return found


def _difference(scores: FloatArray, others: FloatArray, labels: BoolArray) -> dict[str, list[float]]:
    """Return mean differences of mistakes (percent) and log loss, each with its standard error."""
    signs = np.where(labels, 1.0, -1.0)
    mistakes = 100.0 * (((scores > 0.0) != labels) * 1.0 - ((others > 0.0) != labels) * 1.0)
    losses = np.logaddexp(0.0, -signs * scores) - np.logaddexp(0.0, -signs * others)
    return {
        name: [round(float(each.mean()), 4), round(float(each.std() / np.sqrt(len(each))), 4)]
        for name, each in (("mistakes", mistakes), ("log_loss", losses))
    }


def _contenders(frame: pl.DataFrame, labels: BoolArray, second: int) -> dict[str, FloatArray]:
    """Return the scores of each learner with each set of features, by name."""
    found: dict[str, FloatArray] = {}
    at_once, delayed = _steps(frame, delayed=False), _steps(frame, delayed=True)
    for kind in FEATURES:
        features = FeatureSet.of(KUAIREC, kind)
        X = rows_of(frame, labels, features, at_once)
        found[kind] = _forks(X, labels, Learner(), features, at_once)
        if kind == "effects":
            found["newton"] = _newton(X, labels, second)
            means = features.places("label_mean")
            found["running_means"] = X[:, means].sum(axis=1) - (_mean_before(labels) + 0.5)
    features = FeatureSet.of(STREAM)
    X = rows_of(frame, labels, features, at_once)
    found["declared"] = _forks(X, labels, Learner(), features, at_once)
    found["newton_declared"] = _newton(X, labels, second)
    for name, each in (("effects_delayed", FeatureSet.of(KUAIREC)), ("declared_delayed", features)):
        found[name] = _forks(rows_of(frame, labels, each, delayed), labels, Learner(), each, delayed)
    return found


def _steps(frame: pl.DataFrame, *, delayed: bool) -> IntArray:
    """Return the order of events and labels, (2 n,), as `pipeline.sources.schedule.merge_by_time` has it."""
    if not delayed:
        return np.arange(2 * frame.height, dtype=np.int64).reshape(2, -1).T.ravel()
    shown = frame["time_ms"].to_numpy()
    return merge_by_time(shown, shown + frame["play_time_ms"].to_numpy())


def scores_of(
    frame: pl.DataFrame, labels: BoolArray, learner: Learner, kind: FeatureKind = "effects"
) -> FloatArray:
    """Return the score of each row, (n,), made before its label is learned."""
    features, order = FeatureSet.of(KUAIREC, kind), _steps(frame, delayed=False)
    return _forks(rows_of(frame, labels, features, order), labels, learner, features, order)


def rows_of(frame: pl.DataFrame, labels: BoolArray, features: FeatureSet, order: IntArray) -> FloatArray:
    """Return the context vectors of the rows, given the order of events and labels."""
    statistics = RunningStatistics(1_000_000, features=features)
    users, videos, times = (frame[name] for name in ("user_id", "video_id", "time_ms"))
    values = np.empty((frame.height, 0))
    if features.event.names:
        interactions: list[Any] = [_Interaction(*row) for row in frame.select("duration_ms").iter_rows()]
        values = features.event.values(interactions, times.to_numpy())
    ids, ratios = [users.to_list(), videos.to_list()], np.where(labels, RATIO, 0.0)
    running = statistics.run(order, ids, labels, ratios, times.to_numpy(), values)
    layout = ContextLayout.of(0, features)
    X = np.zeros((frame.height, layout.dimension))
    layout.fill(X, np.hstack([running, values]))
    return X


def _mean_before(labels: BoolArray) -> FloatArray:
    """Return the mean of the labels before each, as if there was one more, of a half; shape (n,)."""
    positive = np.cumsum(labels, dtype=np.float64) - labels
    before: FloatArray = (positive + 0.5) / (1.0 + np.arange(len(labels), dtype=np.float64))
    return before


class _Interaction(NamedTuple):
    """What is known of a row when it is shown."""

    feature_0: float
    """The video's duration."""


def _forks(
    X: FloatArray, labels: BoolArray, learner: Learner, features: FeatureSet, order: IntArray
) -> FloatArray:
    forks = Forks(learner_settings(learner, 0, features=features))
    return forks.run(X, np.where(labels, 1.0, -1.0), order)


def _newton(X: FloatArray, labels: BoolArray, second: int) -> FloatArray:
    """Return the scores of the online Newton step with the constants that are best on the first week."""
    rows, y = logistic_newton.standardised(X), np.where(labels, 1.0, -1.0)

    def loss(constants: tuple[float, float]) -> float:
        scores = logistic_newton.scores_of(rows[:second], y[:second], *constants)
        return log_loss(scores, labels[:second]) or 0.0

    best = min(product(logistic_newton.GAMMAS, logistic_newton.EPSILONS), key=loss)
    return logistic_newton.scores_of(rows, y, *best)


def rows_by_time(options: Options) -> tuple[pl.DataFrame, int]:
    """Return the rows by time, and the number of those in the first week."""
    frame = pl.read_csv(options.folder("kuairand") / "log.csv").sort("time_ms", "user_id", "video_id")
    times = frame["time_ms"].to_numpy()
    return frame, int(np.searchsorted(times, times[0] + WEEK))


def _figures(scores: FloatArray, labels: BoolArray) -> dict[str, float | None]:
    area, loss = auc(scores, labels), log_loss(scores, labels)
    error = calibration_error(scores, labels)
    return {
        "mistakes": round(100.0 * float(np.mean((scores > 0.0) != labels)), 2),
        "auc": None if area is None else round(area, 4),
        "log_loss": None if loss is None else round(loss, 4),
        "calibration_error": None if error is None else round(error, 4),
    }
