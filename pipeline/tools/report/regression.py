"""Compute the figures of a run that predicts numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from forks.validation import coverage, mean_absolute_error, r2, root_mean_squared_error
from pipeline.config.settings import CHAMPION
from pipeline.tools.report.comparison import LabelledScores
from pipeline.tools.report.outcomes import (
    OUTCOME,
    Floats,
    Outcomes,
    in_order_of_time,
    known_sums,
    summed_means,
)

QUANTILES: Final = (0.1, 0.9)
"""The quantiles of earlier errors between which 80% of errors are expected."""


class RegressionWindow(msgspec.Struct, frozen=True):
    """Successive labelled events, with the mean absolute error of the model and of both baselines."""

    first: int
    """Time of the first event in milliseconds since 1970, as `last`."""
    last: int
    events: int
    mae: float
    running_means: float | None
    running_mean: float


class Contender(msgspec.Struct, frozen=True):
    """Figures of one learner over the events that all of them predicted."""

    name: str
    mae: float
    rmse: float
    closer: int
    """Events to whose label it came closer than the champion."""


class RegressionFigures(msgspec.Struct, frozen=True):
    """Errors over all labelled events, in the unit of the labels. Figures that are not defined are None."""

    mean: float
    """The mean of the labels, each capped as it is learned."""
    mae: float
    rmse: float
    r2: float | None
    """Share of the labels' variance that the predictions explain."""
    coverage: float | None
    """Share of labels within the prediction and the 10% and 90% quantiles of earlier errors: 0.8 if errors
    stay as they were. See `forks.validation.coverage`."""
    running_means: float | None
    """Mean absolute error of the sum of two entities' running means, less the running mean."""
    running_mean: float
    """Mean absolute error of the mean of all labels that were known when the prediction was made."""
    windows: list[RegressionWindow]
    """Labelled events of all partitions in the order of time."""
    contenders: list[Contender]
    """The champion and its challengers; empty without challengers."""


def regression_figures(
    outcomes: Sequence[Outcomes], offset: float, scores: Sequence[LabelledScores], scale: float, window: int
) -> RegressionFigures | None:
    """Return the figures of a run; None without a labelled event.

    Parameters
    ----------
    outcomes
        Outcomes of each partition.
    offset
        What a score of 0 predicts.
    scores
        Labels and scores of each partition, where there are challengers.
    scale
        What a score of 1 adds to it.
    window
        Labelled events in a window.
    """
    constant = [running_mean(of_partition, offset) for of_partition in outcomes]
    additive = [summed_means(each, mean) for each, mean in zip(outcomes, constant, strict=True)]
    order = in_order_of_time(outcomes)
    events: Outcomes = np.concatenate([np.empty(0, OUTCOME), *outcomes])[order]
    if not len(events):
        return None
    labels, predicted = events["value"], events["prediction"]
    errors = {
        "mae": np.abs(predicted - labels),
        "running_means": np.abs(np.concatenate(additive)[order] - labels),
        "running_mean": np.abs(np.concatenate(constant)[order] - labels),
    }
    by_label_time = np.argsort(events["label_timestamp"], kind="stable")
    return RegressionFigures(
        mean=float(labels.mean()),
        mae=mean_absolute_error(predicted, labels),
        rmse=root_mean_squared_error(predicted, labels),
        r2=r2(predicted, labels),
        coverage=coverage(predicted[by_label_time], labels[by_label_time], QUANTILES),
        running_means=_mean(errors["running_means"]),
        running_mean=float(errors["running_mean"].mean()),
        windows=[
            _window(events["timestamp"][begin : begin + window], errors, slice(begin, begin + window))
            for begin in range(0, len(events), window)
        ],
        contenders=_contenders(scores, offset, scale),
    )


def running_mean(outcomes: Outcomes, offset: float) -> Floats:
    """Return the mean of the labels known at each prediction, shape (n,).

    Parameters
    ----------
    outcomes
        Outcomes of one partition, shape (n,).
    offset
        A number that counts as one more label.
    """
    events, values = known_sums(outcomes, outcomes["value"])
    return (values + offset) / (events + 1.0)


def _window(timestamps: Floats, errors: Mapping[str, Floats], rows: slice) -> RegressionWindow:
    return RegressionWindow(
        first=int(timestamps[0]),
        last=int(timestamps[-1]),
        events=len(timestamps),
        mae=float(errors["mae"][rows].mean()),
        running_means=_mean(errors["running_means"][rows]),
        running_mean=float(errors["running_mean"][rows].mean()),
    )


def _mean(errors: Floats) -> float | None:
    return None if np.isnan(errors).any() else float(errors.mean())


def _contenders(partitions: Sequence[LabelledScores], offset: float, scale: float) -> list[Contender]:
    partitions = [each for each in partitions if len(each.values)]
    names = partitions[0].scores.keys() if partitions else {}
    if len(names) <= 1:
        return []
    labels = np.concatenate([each.values for each in partitions])
    predicted = {
        name: offset + scale * np.concatenate([each.scores[name] for each in partitions]) for name in names
    }
    champion = np.abs(predicted[CHAMPION] - labels)
    return [
        Contender(
            name,
            mean_absolute_error(of_learner, labels),
            root_mean_squared_error(of_learner, labels),
            int(np.sum(np.abs(of_learner - labels) < champion)),
        )
        for name, of_learner in predicted.items()
    ]
