"""Figures of predictions: of classes as log-odds, of numbers as they are."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from scipy.special import logit

from bench.stream_tables import Table
from forks.arrays import BoolArray, FloatArray
from forks.validation import auc, calibration_error, log_loss, mean_absolute_error
from pipeline.config.target_settings import RegressionSettings

CLIP: Final = 1e-6
"""Probabilities of all learners are at least this far from 0 and 1."""
LIMIT: Final = float(logit(1.0 - CLIP))
"""The same of log-odds."""
PARTS: Final = 10
"""Parts of a table, each of which is compared with the constant."""


class Run(NamedTuple):
    """What a learner predicted.

    Attributes
    ----------
    predicted
        Log-odds, or numbers in the unit of the labels; shape (n,).
    seconds
        Time of prediction and learning.
    """

    predicted: FloatArray
    seconds: float


def log_odds(probabilities: FloatArray) -> FloatArray:
    """Return log-odds, clipped.

    Examples
    --------
    >>> log_odds(np.array([0.5, 0.0])).round(3).tolist()
    [0.0, -13.816]
    """
    found: FloatArray = logit(np.clip(probabilities, CLIP, 1.0 - CLIP))
    return found


def constant(table: Table) -> FloatArray:
    """Return the log-odds of the share of positive labels before each, or their mean; shape (n,).

    There is half a positive label before all, out of one, or one that is the target's offset.
    """
    positive, counts = table.positive, 1.0 + np.arange(len(table))
    values = table.labels if positive is None else positive.astype(np.float64)
    before = np.cumsum(values) - values
    if isinstance(table.target, RegressionSettings):
        mean: FloatArray = (before + table.target.offset) / counts
        return mean
    return log_odds((before + 0.5) / counts)


def figures(table: Table, run: Run) -> dict[str, Any]:
    """Return the errors of a run, its cost, and by how much it is worse than the constant in any tenth."""
    positive, predicted = table.positive, run.predicted
    if not np.isfinite(predicted).all():
        raise ValueError(
            f"{table.name}: {np.count_nonzero(~np.isfinite(predicted))} predictions are no numbers"
        )
    if positive is None:
        found: dict[str, float | None] = {
            "mae": mean_absolute_error(predicted, table.labels),
            "mean_error": float(np.mean(predicted - table.labels)),
        }
    else:
        predicted = np.clip(predicted, -LIMIT, LIMIT)
        found = {
            "mistakes": 100.0 * float(np.mean((predicted > 0.0) != positive)),
            "auc": auc(predicted, positive),
            "log_loss": log_loss(predicted, positive),
            "calibration_error": calibration_error(predicted, positive),
        }
    rounded = {name: None if each is None else round(each, 4) for name, each in found.items()}
    cost = round(1e6 * run.seconds / len(table), 2)
    return {**rounded, "microseconds": cost, "worst_tenth": _worst_tenth(table, predicted, positive)}


def _worst_tenth(table: Table, predicted: FloatArray, positive: BoolArray | None) -> dict[str, float]:
    """Return the largest excess over the constant in any tenth, by figure; mistakes are in percent."""
    base = constant(table)
    if positive is None:
        excesses = {"mae": np.abs(predicted - table.labels) - np.abs(base - table.labels)}
    else:
        signs = np.where(positive, 1.0, -1.0)
        excesses = {
            "mistakes": 100.0 * (((predicted > 0.0) != positive) * 1.0 - ((base > 0.0) != positive)),
            "log_loss": np.logaddexp(0.0, -signs * predicted) - np.logaddexp(0.0, -signs * base),
        }
    return {
        name: round(max(float(part.mean()) for part in np.array_split(each, min(PARTS, len(each)))), 4)
        for name, each in excesses.items()
    }
