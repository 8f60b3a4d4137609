"""Prepare an evaluation from a file and options."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from forks import Forks, ForksSettings
from forks.arrays import FloatArray, IntArray
from forks.validation import Event, Learner, without_delay
from pipeline.config import settings as config
from pipeline.errors import ConfigError, DataError
from pipeline.model.learner_settings import learner_settings, preset_settings
from pipeline.sources.kuairec import COLUMNS, read_events
from pipeline.sources.kuairec_files import DEFAULT_MATRIX
from pipeline.tools.evaluate.arrays import read_arrays
from pipeline.tools.evaluate.dataset import Dataset
from pipeline.tools.evaluate.libsvm import read_libsvm
from pipeline.tools.evaluate.plays import PlayLearner, play_stream, tags_beside
from pipeline.tools.evaluate.table import column_names, read_table

LARGEST_LEARNER: Final = 10**9
"""Bytes of a learner's inverse Hessian, at most; an update takes its square of operations."""


class Order(NamedTuple):
    """Which events an evaluation uses, and when their labels come."""

    permutation: int | None = None
    """Seed of a random order; None for the order of the file, or of time."""
    limit: int | None = None
    """Number of events from the beginning of that order; None for all."""
    delayed: bool | None = None
    """Whether labels are delayed until the play has ended; None if data with times in their order decide."""

    def rows(self, count: int) -> IntArray:
        """Return the numbers of the rows to use, in their order, out of `count` rows."""
        rows = np.arange(count)
        if self.permutation is not None:
            rows = np.random.default_rng(self.permutation).permutation(count)
        return rows[: self.limit]


@dataclass(frozen=True)
class Trial:
    """A learner, and the stream that it is evaluated on."""

    settings: ForksSettings
    learner: Learner[Any]
    stream: Iterable[Event[Any]]
    X: FloatArray
    """Features, shape (n, d)."""
    targets: FloatArray
    """Target of each event, shape (n,): its label, or for plays `pipeline.features.target.Target.value`."""
    delayed: bool


class Source(NamedTuple):
    """Where the events of a trial are."""

    path: Path
    """File or folder."""
    matrix: str = DEFAULT_MATRIX
    """Name of the CSV file to read if `path` is a folder."""
    label: str | None = None
    """Column of the labels in a CSV file; None for the last column."""
    order: Order = Order()
    """Order of the events."""


def prepare(source: Source, learner: config.Learner) -> Trial:
    """Read a file and make a learner for it.

    A folder, and a CSV file with KuaiRec's columns, hold plays. Their running features are computed, with the
    tags of the videos if KuaiRec's table of tags is in the same folder. In all other files each row is an
    example: `.npz`, `.csv`, and LIBSVM's text format for any other ending.

    Parameters
    ----------
    source
        Where the events are.
    learner
        Preset, and the settings that differ from it.

    Returns
    -------
    Trial
        Learner and stream.

    Raises
    ------
    DataError
        If the file cannot be used.
    ConfigError
        If a setting or an option does not fit the file.
    """
    path, matrix, label, order = source
    if not path.exists():
        raise DataError(f"{path}: there is no such file or folder")
    kind = path.suffix.lower()
    is_csv_file = kind == ".csv" and path.is_file()
    kuairec = path.is_dir() or (is_csv_file and set(COLUMNS) <= set(column_names(path)))
    if label is not None and (kuairec or kind != ".csv"):
        raise ConfigError(
            f"--label {label}: only a CSV file of examples has a label column, and {path} is none"
        )
    if kuairec:
        return _of_plays(path, learner, order, matrix)
    if order.delayed:
        raise ConfigError(f"--delays: {path} has no times, so its labels come at once. Leave the option out")
    if kind == ".npz":
        found = read_arrays(path)
    elif kind == ".csv":
        found = read_table(path, label)
    else:
        found = read_libsvm(path)
    return _of_examples(path, found, learner, order)


def _of_examples(path: Path, found: Dataset, learner: config.Learner, order: Order) -> Trial:
    rows = order.rows(len(found.y))
    X, y = found.X[rows], found.y[rows]
    settings = preset_settings(learner, X.shape[1])
    _check_learner(path, settings)
    return Trial(settings, Forks(settings), without_delay(X, y), X, y, delayed=False)


def _check_learner(path: Path, settings: ForksSettings) -> None:
    """Raise an error if a learner's matrix of features by features would be too large."""
    size = settings.features**2 * 8
    if size > LARGEST_LEARNER:
        raise DataError(
            f"{path}: a learner of {settings.dimension:,} columns and rank {settings.rank:,} takes "
            f"{size / 1e9:,.1f} GB with these settings; the limit is {LARGEST_LEARNER / 1e9:g} GB. "
            "Leave columns out, give fewer to its linear part (--set linear_columns=[0,1000]), or "
            "take --preset paper, which has none"
        )


def _of_plays(path: Path, learner: config.Learner, order: Order, matrix: str) -> Trial:
    if order.delayed and order.permutation is not None:
        raise ConfigError("--delays cannot be used with --permutation: events in random order have no times")
    events = read_events(path, matrix)
    if not len(events):
        raise DataError(f"{path}: none of the {events.rows:,} rows can be used: {events.reasons}")
    delayed = order.permutation is None if order.delayed is None else order.delayed
    chosen = replace(events, frame=events.frame[order.rows(len(events))])
    settings = learner_settings(learner, static_columns=0)
    _check_learner(path, settings)
    plays = play_stream(chosen, tags_beside(path), settings.loss, delayed=delayed)
    play_learner = PlayLearner(Forks(settings), plays)
    return Trial(settings, play_learner, plays.stream(), plays.X, plays.targets, delayed)
