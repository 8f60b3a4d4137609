"""What an evaluation needs, from a file and options."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from forks import Forks, ForksSettings
from forks.arrays import FloatArray, IntArray
from forks.validation import Event, Learner, without_delay
from pipeline.config import tree as config
from pipeline.errors import ConfigError, DataError
from pipeline.model.learner_settings import learner_settings, preset_settings
from pipeline.sources.kuairec import COLUMNS, read_events
from pipeline.tools.evaluate.arrays import read_arrays
from pipeline.tools.evaluate.examples import Examples
from pipeline.tools.evaluate.libsvm import read_libsvm
from pipeline.tools.evaluate.plays import PlayLearner, play_stream, tags_beside
from pipeline.tools.evaluate.table import column_names, read_table


class Order(NamedTuple):
    """Which events come, and when their labels do."""

    permutation: int | None = None
    """Seed of a random order; None for the file's, or that of time."""
    limit: int | None = None
    """Only the first so many events of that order."""
    delayed: bool | None = None
    """Whether labels are delayed by the play; None for where the data have times and keep their order."""

    def rows(self, count: int) -> IntArray:
        """Give the numbers of the rows in their order, of `count` in all."""
        rows = np.arange(count)
        if self.permutation is not None:
            rows = np.random.default_rng(self.permutation).permutation(count)
        return rows[: self.limit]


@dataclass(frozen=True)
class Trial:
    """A learner, a stream for it, and the features that it learns from."""

    settings: ForksSettings
    learner: Learner[Any]
    stream: Iterable[Event[Any]]
    X: FloatArray
    """Shape (n, d)."""
    targets: FloatArray
    """What is learned of each event, shape (n,): its label; see `pipeline.features.target.Target.value` for
    plays."""
    delayed: bool


def prepare(path: Path, learner: config.Learner, order: Order, *, matrix: str, label: str | None) -> Trial:
    """Read a file and make a learner for it.

    A folder and a CSV in KuaiRec's columns are plays, from which running features are made, with the videos'
    tags where KuaiRec's table of them stands beside; of all other files, by their ending `.npz`, `.csv` or
    (any other) LIBSVM's text, each row is an example.

    Parameters
    ----------
    path
        The file or folder.
    learner
        The preset and what differs.
    order
        Of the events.
    matrix
        The CSV to take where `path` is a folder.
    label
        Column of a CSV's labels; None for the last.

    Raises
    ------
    DataError
        The file is not what it should be.
    ConfigError
        A setting or option does not fit.
    """
    if not path.exists():
        raise DataError(f"{path}: there is no such file or folder")
    kind = path.suffix.lower()
    is_csv_file = kind == ".csv" and path.is_file()
    kuairec = path.is_dir() or (is_csv_file and set(COLUMNS) <= set(column_names(path)))
    if label is not None and (kuairec or kind != ".csv"):
        raise ConfigError(f"--label {label}: only a CSV of examples has a column to name, and {path} is none")
    if kuairec:
        return _of_plays(path, learner, order, matrix)
    if order.delayed:
        raise ConfigError(f"--delays: {path} says nothing about time, so its labels come at once")
    if kind == ".npz":
        found = read_arrays(path)
    elif kind == ".csv":
        found = read_table(path, label)
    else:
        found = read_libsvm(path)
    return _of_examples(found, learner, order)


def _of_examples(found: Examples, learner: config.Learner, order: Order) -> Trial:
    rows = order.rows(len(found.y))
    X, y = found.X[rows], found.y[rows]
    settings = preset_settings(learner, X.shape[1])
    return Trial(settings, Forks(settings), without_delay(X, y), X, y, delayed=False)


def _of_plays(path: Path, learner: config.Learner, order: Order, matrix: str) -> Trial:
    if order.delayed and order.permutation is not None:
        raise ConfigError("--delays does not go with --permutation: events out of order have no time")
    events = read_events(path, matrix)
    if not len(events):
        raise DataError(f"{path}: none of the {events.rows} rows can be used: {events.skipped}")
    delayed = order.permutation is None if order.delayed is None else order.delayed
    chosen = replace(events, frame=events.frame[order.rows(len(events))])
    settings = learner_settings(learner, static_columns=0)
    plays = play_stream(chosen, tags_beside(path), settings.loss, delayed=delayed)
    play_learner = PlayLearner(Forks(settings), plays)
    return Trial(settings, play_learner, plays.stream(), plays.X, plays.targets, delayed)
