"""Real rows as arrays, and the columns that the learner sees of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from bench.effects_model import Constants, features, signals
from bench.kuairand import RATIO, TARGETS, WEEK
from forks import Forks, ForksSettings
from forks.arrays import BoolArray, FloatArray, IntArray
from pipeline.config.feature_layout import FeatureKind
from pipeline.config.stream import KUAIREC
from pipeline.features.binary import TARGET
from pipeline.features.feature_set import EFFECTS, FeatureSet
from pipeline.features.statistics import RunningStatistics
from pipeline.features.tables import TagTable
from pipeline.features.tags import TagLists
from pipeline.model.learner_settings import LINEAR_ALPHA
from pipeline.sources.kuairec import read_events

OWN: Final = ("user_effect", "user_noise", "video_effect", "video_noise", "effects_logit")
"""The features in use that are effects, in the order of `bench.effects_model.features`."""
OWN_COLUMNS: Final = [EFFECTS.index(name) for name in OWN]
OFFSET: Final = EFFECTS.index("effects_logit")
WATCHED: Final = "watched"
"""The pipeline's own target on KuaiRand: whether the play is longer than 0.75 of the video."""
KUAIRAND_TARGETS: Final = (WATCHED, *TARGETS)
SEED: Final = 123
"""Of the halves of the users, as in `bench.features`."""
MATRIX_OF_ONE_USER: Final = "big_matrix_1000.csv"


@dataclass(frozen=True)
class Rows:
    """Events in an order.

    Attributes
    ----------
    users, videos : ndarray, shape (n,), int64
        Ids.
    ratios : ndarray, shape (n,), float64
        Watch ratios.
    tags
        Tags of the videos, as far as there are any.
    """

    users: IntArray
    videos: IntArray
    ratios: FloatArray
    tags: TagLists

    @property
    def positive(self) -> BoolArray:
        """Which labels are positive, shape (n,)."""
        return TARGET.are_positive(self.ratios)

    @property
    def signals(self) -> FloatArray:
        """What the model of the effects learns of the labels, shape (n,)."""
        return TARGET.signals(self.ratios)

    def taken(self, order: IntArray) -> Rows:
        """Return some of the events, in the order of their numbers."""
        return Rows(self.users[order], self.videos[order], self.ratios[order], self.tags)

    def followed_by(self, later: Rows) -> Rows:
        """Return the events and later ones behind them, whose videos have the same tags."""
        return Rows(
            np.concatenate([self.users, later.users]),
            np.concatenate([self.videos, later.videos]),
            np.concatenate([self.ratios, later.ratios]),
            self.tags,
        )

    def without_tags(self) -> Rows:
        """Return the events of videos that have no tags."""
        return Rows(self.users, self.videos, self.ratios, TagLists({}))

    @property
    def at_once(self) -> IntArray:
        """The order in which each label comes before the next event, shape (2 n,): n + i is i's label."""
        n = len(self.users)
        return np.arange(2 * n, dtype=np.int64).reshape(2, n).T.ravel()

    def of_use(self, kind: FeatureKind = "effects", order: IntArray | None = None) -> FloatArray:
        """Return the pipeline's features, as they were known at each event, shape (n, features)."""
        order = self.at_once if order is None else order
        statistics = RunningStatistics(1_000_000, tags=self.tags, features=FeatureSet.of(KUAIREC, kind))
        users, videos = self.users.tolist(), self.videos.tolist()
        return statistics.run(order, [users, videos], self.positive, self.ratios)

    def numbers(self) -> tuple[IntArray, IntArray]:
        """Return numbers of users and videos from 0, shape (n,) each."""
        users = np.unique(self.users, return_inverse=True)[1]
        return users.astype(np.int64), np.unique(self.videos, return_inverse=True)[1].astype(np.int64)

    def effects_run(self, constants: Constants) -> Callable[[], FloatArray]:
        """Return what works out the effects under some constants, with all that it reads at hand."""
        users, videos = self.numbers()
        lists = np.array([self.tags.find(video) for video in self.videos.tolist()], dtype=np.int64)
        x = signals(self.ratios, TARGET.threshold, constants.slope)
        return lambda: features(users, videos, lists, self.tags.packed, x, constants)

    def effects(self, constants: Constants) -> FloatArray:
        """Return the effects under some constants, and the signals' variance, shape (n, 6)."""
        return self.effects_run(constants)()

    def with_effects(self, means: FloatArray, constants: Constants) -> FloatArray:
        """Return features whose effects are those under some constants, shape (n, features)."""
        X = means.copy()
        X[:, OWN_COLUMNS] = self.effects(constants)[:, : len(OWN)]
        return X


def kuairec(folder: Path) -> Rows:
    """Return the usable rows of KuaiRec's sample, in the order of their times, which are made up."""
    return _of_frame(read_events(folder).frame, folder)


def kuairec_of_one_user(folder: Path) -> Rows:
    """Return the rows of the big matrix, which are of one user who is not in the sample."""
    return _of_frame(read_events(folder / MATRIX_OF_ONE_USER).frame, folder)


class Weeks(NamedTuple):
    """KuaiRand's rows with the labels of a target.

    Attributes
    ----------
    rows
        The events by time.
    frame
        All their columns.
    second
        Number of events of the first week.
    """

    rows: Rows
    frame: pl.DataFrame
    second: int


def kuairand(folder: Path, target: str) -> Weeks:
    """Return KuaiRand's rows for a target: a column of the file, or `WATCHED`, which needs a known length."""
    frame = pl.read_csv(folder / "log.csv").sort("time_ms", "user_id", "video_id")
    border = frame["time_ms"][0] + WEEK
    if target == WATCHED:
        frame = frame.filter(pl.col("duration_ms") > 0)
        ratios = (frame["play_time_ms"] / frame["duration_ms"]).to_numpy()
    else:
        ratios = np.where(frame[target].to_numpy() == 1, RATIO, 0.0)
    users, videos, times = (frame[name].to_numpy() for name in ("user_id", "video_id", "time_ms"))
    return Weeks(Rows(users, videos, ratios, TagLists({})), frame, int(np.searchsorted(times, border)))


def halves(users: IntArray) -> tuple[IntArray, IntArray]:
    """Return the events of one half of the users and those of the other."""
    drawn = np.random.default_rng(SEED).permutation(np.unique(users))
    first = np.isin(users, drawn[: len(drawn) // 2])
    return np.flatnonzero(first), np.flatnonzero(~first)


def scores(X: FloatArray, positive: BoolArray, order: IntArray | None = None, **changes: Any) -> FloatArray:
    """Return the score of each event, (n,), by the practical preset, made before its label is learned.

    Parameters
    ----------
    X : ndarray, shape (n, columns), float64
        The learner's inputs.
    positive : ndarray, shape (n,), bool
        The labels.
    order : ndarray, shape (2 n,), int64
        Steps: i for event i, n + i for its label; None for labels at once.
    **changes
        Settings that differ from the preset.
    """
    learner, y = Forks(ForksSettings.practical(X.shape[1], **changes)), np.where(positive, 1.0, -1.0)
    X = np.ascontiguousarray(X)
    return learner.predict_and_learn_many(X, y) if order is None else learner.run(X, y, order)


def with_offset(column: int = OFFSET, linear_alpha: float = LINEAR_ALPHA) -> dict[str, Any]:
    """Return the settings in use that add the log-odds of the effects to the score."""
    return {"offset_column": column, "linear_alpha": linear_alpha}


def _of_frame(frame: pl.DataFrame, folder: Path) -> Rows:
    tags = TagTable(folder / "item_categories.csv").lists
    users, videos, ratios = (frame[name].to_numpy() for name in ("user_id", "video_id", "watch_ratio"))
    return Rows(users, videos, ratios, tags)
