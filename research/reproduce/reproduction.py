"""Running an experiment, resuming it, and writing its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from pipeline.errors import ConfigError, DataError
from research.experiments import EXPERIMENTS, Data, Row, Store, StoreError, as_csv, rows_of, run_missing
from research.harness.trials import Trial
from research.reproduce.picture import draw

RESULTS: Final = "results.jsonl"
"""File of the results of all trials of all experiments, in the output folder."""


class ExperimentOptions(NamedTuple):
    """An experiment to run, and how."""

    experiment: str
    """Name in `research.experiments.EXPERIMENTS`."""
    streams: tuple[str, ...] = ()
    """Streams to run; empty for all."""
    learners: tuple[str, ...] = ()
    """Learners to run; empty for all."""
    runs: int = 20
    jobs: int = 2

    @property
    def command(self) -> str:
        """Command that gives the same results, without the folders of data and results."""
        only = [f"--stream {name}" for name in self.streams]
        only += [f"--learner '{name}'" for name in self.learners]
        return " ".join(["python -m research", self.experiment, f"--runs {self.runs}", *only])


class Reproduction(NamedTuple):
    """Results of an experiment."""

    options: ExperimentOptions
    title: str
    rows: list[Row]

    def as_object(self) -> dict[str, Any]:
        """Return the results as an object for JSON."""
        return {
            "experiment": self.options.experiment,
            "title": self.title,
            "command": self.options.command,
            "runs": self.options.runs,
            "rows": [row.as_object() for row in self.rows],
        }


Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


def reproduce(
    options: ExperimentOptions, data: Data, out: Path, notify: Callable[[str], None], progress: Progress
) -> Reproduction:
    """Run the trials whose results are not stored yet, store each result, and then write the tables.

    In the folder ``out``, results of trials are stored in `results.jsonl`, rows in `NAME.json` and
    `NAME.csv`, and figures in `NAME.svg` and `NAME.png`.

    Parameters
    ----------
    options
        The experiment to run, and how.
    data
        Source of the data sets.
    out
        Folder for the results, created if it does not exist.
    notify
        Function that shows a message to the user.
    progress
        Function that takes the experiment's name and number of trials, and returns a context manager whose
        value is called with the number of trials done so far.

    Raises
    ------
    ConfigError
        A stream or learner is not among the experiment's, or the folder cannot be written to.
    DataError
        A data set is missing, or the file of results is damaged.
    """
    experiment = EXPERIMENTS[options.experiment]
    trials = _trials(options, data)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with Store(out / RESULTS) as store:
            if store.dropped:
                notify(f"{store.path}: the last line was incomplete, as after a kill, and was removed")
            with progress(options.experiment, len(trials)) as update:
                run_missing(trials, store, options.jobs, update)
            found = [(trial, result) for trial in trials if (result := store.get(trial)) is not None]
        reproduction = Reproduction(options, experiment.title, rows_of(found, experiment.printed))
        _write(reproduction, out)
    except StoreError as error:
        raise DataError(str(error)) from error
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be written to: {error.strerror or error}") from error
    return reproduction


def _trials(options: ExperimentOptions, data: Data) -> Sequence[Trial]:
    experiment = EXPERIMENTS[options.experiment]
    _check_known("--stream", options.streams, experiment.streams)
    streams = [name for name in experiment.streams if not options.streams or name in options.streams]
    trials = [trial for stream in streams for trial in experiment.trials(stream, data, options.runs)]
    _check_known("--learner", options.learners, tuple(dict.fromkeys(trial.learner for trial in trials)))
    return [trial for trial in trials if not options.learners or trial.learner in options.learners]


def _check_known(option: str, asked: Sequence[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            raise ConfigError(f"{option} {name}: unknown name; this experiment has {', '.join(known)}")


def _write(reproduction: Reproduction, out: Path) -> None:
    options = reproduction.options
    name = options.experiment
    text = msgspec.json.format(msgspec.json.encode(reproduction.as_object())).decode()
    (out / f"{name}.json").write_text(f"{text}\n")
    (out / f"{name}.csv").write_text(as_csv(reproduction.rows))
    figure = EXPERIMENTS[name].panels
    panels = [panel for panel in figure(reproduction.rows) if panel.lines] if figure else []
    if panels:
        draw(reproduction.title, panels, f"{options.command}. Bars: deviation over the runs", out / name)
