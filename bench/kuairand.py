"""Mistakes on real KuaiRand rows, whose times are real, with each kind of running features.

The fading of the effects was chosen on the first week, and which features stand beside them on both. Labels
at once, as most come within seconds. A label is a watch ratio of 1.5 or 0 here: the stream has none for its
targets.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from bench.options import Options
from forks import Forks
from forks.arrays import BoolArray, FloatArray, IntArray
from forks.validation import auc, log_loss
from pipeline.config.feature_layout import FeatureKind
from pipeline.config.stream import KUAIREC
from pipeline.config.tree import Learner
from pipeline.features.feature_set import FEATURES, FeatureSet
from pipeline.features.statistics import RunningStatistics
from pipeline.model.learner_settings import learner_settings

TARGETS: Final = ("label", "long_view", "is_click")
WEEK: Final = 7 * 86_400_000
"""Milliseconds."""
RATIO: Final = 1.5
"""Watch ratio of a positive label."""


def run(options: Options) -> dict[str, Any]:
    """Return figures by target, kind of features and week."""
    frame, second = rows_by_time(options)
    found: dict[str, Any] = {"events": frame.height, "in_first_week": second}
    for target in TARGETS:
        labels = frame[target].to_numpy() == 1
        positive = float(labels.mean())
        found[target] = {"majority": round(100.0 * min(positive, 1.0 - positive), 2)}
        for kind in FEATURES:
            scores = scores_of(frame, labels, Learner(), kind)
            found[target][kind] = {
                "first_week": _figures(scores[:second], labels[:second]),
                "second_week": _figures(scores[second:], labels[second:]),
                "all": _figures(scores, labels),
            }
            options.say(f"{target}, {kind}: {found[target][kind]}")
    return found


def scores_of(
    frame: pl.DataFrame, labels: BoolArray, learner: Learner, kind: FeatureKind = "effects"
) -> FloatArray:
    """Return the score of each row, (n,), made before its label is learned."""
    features = FeatureSet.of(KUAIREC, kind)
    statistics = RunningStatistics(1_000_000, features=features)
    order: IntArray = np.arange(2 * frame.height, dtype=np.int64).reshape(2, -1).T.ravel()
    users, videos = frame["user_id"].to_list(), frame["video_id"].to_list()
    X = statistics.run(order, [users, videos], labels, np.where(labels, RATIO, 0.0))
    forks = Forks(learner_settings(learner, 0, features=features))
    return forks.predict_and_learn_many(np.ascontiguousarray(X), np.where(labels, 1.0, -1.0))


def rows_by_time(options: Options) -> tuple[pl.DataFrame, int]:
    """Return the rows by time, and the number of those in the first week."""
    frame = pl.read_csv(options.folder("kuairand") / "log.csv").sort("time_ms", "user_id", "video_id")
    times = frame["time_ms"].to_numpy()
    return frame, int(np.searchsorted(times, times[0] + WEEK))


def _figures(scores: FloatArray, labels: BoolArray) -> dict[str, float | None]:
    area, loss = auc(scores, labels), log_loss(scores, labels)
    return {
        "mistakes": round(100.0 * float(np.mean((scores > 0.0) != labels)), 2),
        "auc": None if area is None else round(area, 4),
        "log_loss": None if loss is None else round(loss, 4),
    }
