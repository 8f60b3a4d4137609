"""Run an evaluation and sum it up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from forks.arrays import IntArray
from forks.validation import Event, Metrics, Predictions, progressive, summarize
from pipeline.config.settings import Learner
from pipeline.errors import DataError
from pipeline.tools.evaluate.advice import Advice, Attempt, Labelled, advise, leaks
from pipeline.tools.evaluate.trial import Trial

PROGRESS_EVERY = 1_000
"""Events between two calls of the progress function."""


class Evaluation(msgspec.Struct, frozen=True):
    """Figures that `forks evaluate --json` prints; they are explained at `forks.validation.Metrics`."""

    events: int
    mistakes: float
    auc: float | None
    log_loss: float | None
    majority: float
    seconds: float
    """Seconds of prediction and learning, without reading, compiling and summing up."""
    learner: str
    """Preset."""
    changes: dict[str, Any]
    """Settings that differ from the preset."""
    features: int
    delayed: bool
    """Whether labels came when the play had ended, instead of at once."""
    positive: float
    loss_name: str
    loss: float
    brier: float | None
    calibration_error: float | None
    regret: float | None
    windows: list[Metrics]
    advice: list[Advice]


class Run(NamedTuple):
    """Predictions of a learner, and the seconds that the run took."""

    predictions: Predictions
    seconds: float


def run(trial: Trial, progress: Callable[[int], None]) -> Run:
    """Let the learner of a trial predict and learn the whole stream, which is possible once.

    Parameters
    ----------
    trial
        Learner and stream.
    progress
        Function to call now and then with the number of events predicted.

    Returns
    -------
    Run
        Predictions and seconds.
    """
    begin = time.perf_counter()
    predictions = progressive(trial.learner, _with_progress(trial.stream, progress))
    return Run(Predictions(predictions.scores, trial.targets), time.perf_counter() - begin)


def evaluate(
    trial: Trial,
    learner: Learner,
    done: Run,
    *,
    window: int | None = None,
    regret: bool = True,
    command: str = "forks evaluate",
) -> Evaluation:
    """Sum up a run.

    Parameters
    ----------
    trial
        Trial that was run.
    learner
        Preset, and the settings that differ from it.
    done
        Result of the run.
    window
        Events in a window; by default a tenth of all.
    regret
        Whether to compute the best fixed linear predictor, which takes long for hundreds of features.
    command
        What was run, for advice.

    Returns
    -------
    Evaluation
        Figures of the run.

    Raises
    ------
    DataError
        If the best fixed linear predictor was not found.
    """
    loss = trial.settings.loss
    try:
        summary = summarize(done.predictions, loss=loss, X=trial.X if regret else None, window=window)
    except RuntimeError as error:
        raise DataError(
            f"the regret cannot be computed: {error}. Features with extreme outliers can cause this. "
            "Leave it out with --no-regret"
        ) from error
    total = summary.total
    return Evaluation(
        events=total.events,
        mistakes=total.mistakes,
        auc=total.auc,
        log_loss=total.log_loss,
        majority=total.majority,
        seconds=done.seconds,
        learner=learner.preset,
        changes=learner.overrides,
        features=trial.X.shape[1],
        delayed=trial.delayed,
        positive=total.positive,
        loss_name=loss,
        loss=total.loss,
        brier=total.brier,
        calibration_error=total.calibration_error,
        regret=total.regret,
        windows=summary.windows,
        advice=[*_advice(trial, done.predictions, Attempt(command, trial.settings))],
    )


def _advice(trial: Trial, predictions: Predictions, attempt: Attempt) -> Iterator[Advice]:
    """Yield what there is to look at. The running mean knows all labels before an event, also late ones."""
    positive = predictions.labels > 0.0
    before = np.arange(len(positive))
    known: IntArray = np.cumsum(positive) - positive
    events = Labelled(
        label="the file",
        setting="--label",
        numbers=before + 1,
        times=None,
        scores=predictions.scores,
        values=predictions.labels,
        positive=positive,
        mean=((known + 0.5) / (before + 1)).astype(np.float64),
        log_odds=trial.settings.loss == "logistic",
    )
    yield from advise(events, attempt)
    columns = [pl.Series(f"feature {number}", column) for number, column in enumerate(trial.X.T, 1)]
    yield from leaks(columns, positive.astype(np.float64), settings="")


def _with_progress(stream: Iterable[Event[Any]], progress: Callable[[int], None]) -> Iterator[Event[Any]]:
    for number, event in enumerate(stream):
        if number % PROGRESS_EVERY == 0:
            progress(number)
        yield event
