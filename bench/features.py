"""Which running statistics earn their place: candidates beside those in use, on two halves of the users.

What is in use was chosen on the first half; the second one had no say. Labels at once. KuaiRec's authors
are missing here, since the daily table at hand knows none of the sample's videos, and so are durations and
everything about time, since the sample's are made up: forgotten means can only be shown not to be needed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from bench.kuairec import Stream, labels_at_once
from bench.options import Options
from forks import Forks, ForksSettings
from forks.arrays import FloatArray
from forks.validation import auc, log_loss
from pipeline.config.settings import Learner
from pipeline.features.binary import TARGET
from pipeline.features.feature_set import EFFECTS, RUNNING
from pipeline.features.tables import TagTable
from pipeline.features.totals import PRIOR_WEIGHT
from pipeline.model.learner_settings import learner_settings
from pipeline.sources.kuairec import read_events

ORDERS = 6
HALF_LIFE = 20.0
"""Labels of an entity after which one counts half, for the forgotten means."""
OWN = ("user_effect", "user_noise", "video_effect", "video_noise", "effects_logit")
"""The features in use that are effects."""

Block: TypeAlias = tuple[float, float, float, float]
Set: TypeAlias = tuple[FloatArray, dict[str, Any]]
Columns: TypeAlias = dict[str, list[tuple[float, ...]]]


class Totals:
    """Sums over the labels of a key: events, labels, ratios, and labels that the means did not foresee.

    Parameters
    ----------
    keep : what is kept of older labels with each new one, 1 for all
    """

    def __init__(self, keep: float = 1.0) -> None:
        self._keep = keep
        self._sums: defaultdict[Any, FloatArray] = defaultdict(lambda: np.zeros(4))

    def of(self, keys: Iterable[Any]) -> FloatArray:
        """Return the sums over all the keys, (4,)."""
        return sum((self._sums[key] for key in keys if key in self._sums), np.zeros(4))

    def add(self, keys: Iterable[Any], sums: FloatArray) -> None:
        """Count a label for each of the keys."""
        for key in keys:
            self._sums[key] = self._keep * self._sums[key] + sums


def block(sums: FloatArray, label_prior: float, ratio_prior: float) -> Block:
    """Return label mean, its logit, ratio mean and log count, smoothed as the features in use are."""
    weight = sums[0] + PRIOR_WEIGHT
    mean = (sums[1] + PRIOR_WEIGHT * label_prior) / weight
    ratio = (sums[2] + PRIOR_WEIGHT * ratio_prior) / weight
    return float(mean), _logit(mean), float(ratio), math.log1p(sums[0])


def candidates(
    frame: pl.DataFrame, running: FloatArray, stream: Stream, tags: dict[int, list[int]]
) -> dict[str, FloatArray]:
    """Return columns by name, (n, some) each, as they were known when each event came."""
    by_tag, by_user_and_tag, everything = Totals(), Totals(), Totals()
    recent_users, recent_videos = (Totals(0.5 ** (1.0 / HALF_LIFE)) for _ in range(2))
    found: Columns = defaultdict(list)
    for x, (user, video), ratio, y in zip(
        running.tolist(), stream.pairs, frame["watch_ratio"].to_list(), stream.y.tolist(), strict=True
    ):
        known = dict(zip(RUNNING, x, strict=True))
        own = tags.get(video, [])
        pairs = [(user, tag) for tag in own]
        events, labels, ratios, _ = everything.of(["all"])
        label_prior, ratio_prior = (labels + 0.5) / (events + 1.0), (ratios + 0.5) / (events + 1.0)
        of_pairs = by_user_and_tag.of(pairs)
        found["tags"].append(block(by_tag.of(own), label_prior, ratio_prior))
        found["user by tag"].append(block(of_pairs, known["user_label_mean"], known["user_value_mean"]))
        found["user by tag, unforeseen"].append((float(of_pairs[3] / (of_pairs[0] + PRIOR_WEIGHT)),))
        recent = (recent_users.of([user]), recent_videos.of([video]))
        found["recent"].append(sum((block(sums, label_prior, ratio_prior)[:3] for sums in recent), ()))
        foreseen = known["user_label_logit"] + known["video_label_logit"] - _logit(label_prior)
        label = float(y > 0)
        sums = np.array([1.0, label, TARGET.summand(ratio), label - 1.0 / (1.0 + math.exp(-foreseen))])
        for totals, keys in (
            (by_tag, own),
            (by_user_and_tag, pairs),
            (everything, ["all"]),
            (recent_users, [user]),
            (recent_videos, [video]),
        ):
            totals.add(keys, sums)
    return {name: np.array(columns) for name, columns in found.items()}


def sets(
    frame: pl.DataFrame, stream: Stream, running: FloatArray, tags: dict[int, list[int]]
) -> dict[str, Set]:
    """Return the inputs to compare, (n, columns) each, and the settings that differ from the preset.

    Parameters
    ----------
    frame : the events
    stream : the same with the features in use
    running : the features of the kind ``running``, (n, columns)
    tags : tags by video
    """
    extra = candidates(frame, running, stream, tags)
    own = [EFFECTS.index(name) for name in OWN]
    of_use = asdict(learner_settings(Learner(), 0))
    leaning = {name: of_use[name] for name in ("offset_column", "linear_alpha")}
    alone = {"offset_column": OWN.index("effects_logit"), "linear_alpha": leaning["linear_alpha"]}
    return {
        "in use": (stream.X, leaning),
        "in use, without offset": (stream.X, {}),
        "effects alone": (stream.X[:, own], alone),
        "running": (running, {}),
        "running, but for tags": (running[:, : RUNNING.index("video_tag_label_mean")], {}),
    } | {f"in use and {name}": (np.hstack([stream.X, columns]), leaning) for name, columns in extra.items()}


def run(options: Options) -> dict[str, Any]:
    """Return figures by half of the users and set of features."""
    folder = options.folder("kuairec")
    orders = options.runs or ORDERS
    frame = read_events(folder).frame
    users = np.random.default_rng(123).permutation(np.unique(frame["user_id"].to_numpy()))
    first = pl.col("user_id").is_in(users[: len(users) // 2].tolist())
    return {
        "orders": orders,
        "chosen_on": _half(frame.filter(first), folder, orders, options),
        "confirmed_on": _half(frame.filter(~first), folder, orders, options),
    }


def _half(frame: pl.DataFrame, folder: Path, orders: int, options: Options) -> dict[str, Any]:
    table = TagTable(folder / "item_categories.csv")
    tags = {video: np.flatnonzero(table.block(video)).tolist() for video in frame["video_id"].unique()}
    played: dict[str, list[tuple[float, float, float]]] = {}
    for seed in range(orders):
        shuffled = frame[np.random.default_rng(seed).permutation(frame.height)]
        stream, running = (labels_at_once(shuffled, folder, kind) for kind in ("effects", "running"))
        for name, (X, changes) in sets(shuffled, stream, running.X, tags).items():
            played.setdefault(name, []).append(_play(X, stream.y, changes))
        options.say(f"{frame.height:,} events: {seed + 1} of {orders} orders")
    base = np.array(played["in use"])
    figures = {name: _figures(np.array(rows), base) for name, rows in played.items()}
    for name, found in figures.items():
        options.say(f"{name}: {found}")
    return {"events": frame.height, "features": figures}


def _play(X: FloatArray, y: FloatArray, changes: dict[str, Any]) -> tuple[float, float, float]:
    """Return percent of mistakes, AUC and log loss of the practical preset with some changes."""
    settings = ForksSettings.practical(X.shape[1], **changes)
    scores = Forks(settings).predict_and_learn_many(np.ascontiguousarray(X), y)
    watched = y > 0
    area, loss = auc(scores, watched), log_loss(scores, watched)
    if area is None or loss is None:
        raise ValueError("the labels of the data are all the same, so there is no area under the curve")
    return 100.0 * float(np.mean((scores > 0) != watched)), area, loss


def _figures(rows: FloatArray, base: FloatArray) -> dict[str, Any]:
    """Return means, and what differs from the features in use, with its standard error."""
    names: tuple[tuple[str, Callable[[float], float]], ...] = (
        ("mistakes", lambda value: round(value, 3)),
        ("auc", lambda value: round(value, 4)),
        ("log_loss", lambda value: round(value, 4)),
    )
    difference = rows - base
    error = difference.std(axis=0) / math.sqrt(len(rows))
    return {
        name: {
            "mean": digits(float(rows[:, i].mean())),
            "difference": digits(float(difference[:, i].mean())),
            "standard_error": round(float(error[i]), 4),
        }
        for i, (name, digits) in enumerate(names)
    }


def _logit(p: float) -> float:
    return math.log(p / (1.0 - p))
