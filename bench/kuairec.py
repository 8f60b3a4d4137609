"""Real KuaiRec rows as a stream of questions and answers, the running features worked out once for all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from forks.arrays import FloatArray, IntArray
from pipeline.kuairec import read_events
from pipeline.schedule import merge
from pipeline.statistics import FEATURES, RunningStatistics

WATCHED = 0.75


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


def in_time_order(folder: Path, *, delayed: bool) -> Stream:
    """Return the usable rows by time; a label comes at once, or when the play has ended."""
    frame = read_events(folder).frame
    if not delayed:
        return _stream(frame, _at_once(frame.height))
    return _stream(frame, merge(frame["timestamp"].to_numpy(), frame["label_timestamp"].to_numpy()))


def permuted(folder: Path, seed: int) -> Stream:
    """Return the usable rows in random order, labels at once."""
    frame = read_events(folder).frame
    order = np.random.default_rng(seed).permutation(frame.height)
    return _stream(frame[order], _at_once(frame.height))


def _at_once(events: int) -> IntArray:
    return np.arange(2 * events, dtype=np.int64).reshape(2, events).T.ravel()


def _stream(frame: pl.DataFrame, order: IntArray) -> Stream:
    pairs: list[tuple[int, int]] = frame.select("user_id", "video_id").rows()
    ratios = frame["watch_ratio"].to_list()
    statistics = RunningStatistics(max_entities=1_000_000)
    n = len(pairs)
    X = np.empty((n, len(FEATURES)))
    for number in order.tolist():
        event = number % n
        if number < n:
            X[event] = statistics.features(*pairs[event])
        else:
            user, video = pairs[event]
            statistics.update(user, video, ratios[event] > WATCHED, ratios[event])
    return Stream(order, pairs, X, np.where(np.array(ratios) > WATCHED, 1.0, -1.0))
