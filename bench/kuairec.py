"""Real KuaiRec rows as a stream of questions and answers, the running features worked out once for all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from forks.arrays import FloatArray, IntArray
from pipeline.config.feature_layout import FeatureKind
from pipeline.config.stream import KUAIREC
from pipeline.features.binary import TARGET
from pipeline.features.feature_set import FeatureSet
from pipeline.features.statistics import RunningStatistics
from pipeline.features.tables import TagTable
from pipeline.features.tags import TagLists
from pipeline.sources.kuairec import read_events
from pipeline.sources.schedule import merge_by_time


@dataclass(frozen=True)
class Stream:
    """Events and the order in which they and their labels come.

    Parameters
    ----------
    order : (2 n,) int64, i for event i, n + i for its label
    pairs : user and video of each event
    X : (n, running features) float64, as they were known at the event
    y : (n,) float64, -1 or +1
    """

    order: IntArray
    pairs: list[tuple[int, int]]
    X: FloatArray
    y: FloatArray


def in_time_order(folder: Path, *, delayed: bool, kind: FeatureKind = "effects") -> Stream:
    """Return the usable rows by time; a label comes at once, or when the play has ended."""
    frame = read_events(folder).frame
    order = _at_once(frame.height)
    if delayed:
        order = merge_by_time(frame["timestamp"].to_numpy(), frame["label_timestamp"].to_numpy())
    return _stream(frame, order, _tags(folder), kind)


def permuted(folder: Path, seed: int) -> Stream:
    """Return the usable rows in random order, labels at once."""
    frame = read_events(folder).frame
    order = np.random.default_rng(seed).permutation(frame.height)
    return labels_at_once(frame[order], folder)


def labels_at_once(frame: pl.DataFrame, folder: Path, kind: FeatureKind = "effects") -> Stream:
    """Return rows in the order that they have, each label before the next event."""
    return _stream(frame, _at_once(frame.height), _tags(folder), kind)


def _tags(folder: Path) -> TagLists:
    return TagTable(folder / "item_categories.csv").lists


def _at_once(events: int) -> IntArray:
    return np.arange(2 * events, dtype=np.int64).reshape(2, events).T.ravel()


def _stream(frame: pl.DataFrame, order: IntArray, tags: TagLists, kind: FeatureKind) -> Stream:
    pairs: list[tuple[int, int]] = frame.select("user_id", "video_id").rows()
    ratios = frame["watch_ratio"].to_numpy()
    watched = TARGET.are_positive(ratios)
    statistics = RunningStatistics(max_entities=1_000_000, tags=tags, features=FeatureSet.of(KUAIREC, kind))
    users, videos = frame["user_id"].to_list(), frame["video_id"].to_list()
    X = statistics.run(order, [users, videos], watched, ratios)
    return Stream(order, pairs, X, np.where(watched, 1.0, -1.0))
