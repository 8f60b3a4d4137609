"""Errors on files of other trades, KuaiRand and KuaiRec, beside Vowpal Wabbit and River.

Every learner predicts each event of a file, in the order of its rows, and then learns its label, which so
comes at once. All events count, from the first. No learner is tuned here: each is as it comes, and of the
settings of Vowpal Wabbit and of River's learners the best in hindsight is named as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from bench.options import Options
from bench.stream_figures import Run, constant, figures
from bench.stream_own import run_own
from bench.stream_river import river_learners
from bench.stream_tables import Table, tables
from bench.stream_vowpal import vowpal_learners
from pipeline.errors import ConfigError

PEERS: Final = ("vowpal_wabbit", "river")
"""What the names of the peers' learners begin with."""
SECONDS: Final = 10.0
"""From one line of progress to the next, at least."""


class Progress:
    """Says which learner is on which table, and now and then how many rows it has done.

    Parameters
    ----------
    options
        Where it goes.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._title, self._rows, self._said = "", 0, 0.0

    def begin(self, title: str, rows: int) -> None:
        """Say that a learner begins on a table of so many rows."""
        self._title, self._rows, self._said = title, rows, time.monotonic()
        self._options.say(f"{title}: {rows:,} rows ...")

    def __call__(self, rows: int) -> None:
        """Say the number of rows that are done, unless something was said a short time ago."""
        if time.monotonic() - self._said >= SECONDS:
            self._options.say(f"{self._title}: {rows:,} of {self._rows:,} rows")
            self._said = time.monotonic()

    def end(self, found: Mapping[str, Any]) -> None:
        """Say what was found."""
        self._options.say(f"{self._title}: {found}")


def run(options: Options) -> dict[str, Any]:
    """Return figures by table and learner, or end with a message; `--events` cuts each table."""
    progress, found = Progress(options), dict[str, Any]()
    try:
        learners = learners_of(progress, quiet=options.quiet)
    except ConfigError as error:
        raise SystemExit(f"there is no Vowpal Wabbit to compare with: {error}") from error
    for name, read in tables(options).items():
        found[name] = compare(read().first(options.events), learners, progress)
    return found


def learners_of(progress: Progress, *, quiet: bool) -> dict[str, Callable[[Table], Run]]:
    """Return what runs each learner, by name."""
    return {
        "constant": _constant,
        "forks": lambda table: run_own(table, progress),
        **vowpal_learners(quiet=quiet),
        **river_learners(progress),
    }


def compare(
    table: Table, learners: Mapping[str, Callable[[Table], Run]], progress: Progress
) -> dict[str, Any]:
    """Return the figures of each learner on a table, and which of each peer's is the best."""
    found: dict[str, Any] = {"rows": len(table)}
    loss = "mae"
    if table.positive is not None:
        share, loss = float(np.mean(table.positive)), "log_loss"
        found["majority"] = round(100.0 * min(share, 1.0 - share), 2)
    for name, learner in learners.items():
        progress.begin(f"{table.name}, {name}", len(table))
        found[name] = figures(table, learner(table))
        progress.end(found[name])
    for peer in PEERS:
        names = [name for name in learners if name.startswith(peer)]
        if names:
            found[f"best of {peer}"] = min(names, key=lambda name: float(found[name][loss]))
    return found


def _constant(table: Table) -> Run:
    begin = time.perf_counter()
    predicted = constant(table)
    return Run(predicted, time.perf_counter() - begin)
