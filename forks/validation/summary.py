"""Metrics of the predictions on a stream, in windows and in total."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forks.arrays import FloatArray
from forks.losses import LOSSES, LossName
from forks.validation.hindsight import best_linear, losses
from forks.validation.metrics import auc, brier_score, calibration_error, log_loss, majority
from forks.validation.progressive import Predictions


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics over consecutive events. Shares lie between 0 and 1.

    Attributes
    ----------
    first
        Number of the first event, from 0.
    events
        Number of events.
    mistakes
        Share of events whose score had the wrong sign; a score of 0 predicts -1.
    majority
        Share of mistakes when the stream's more frequent label is always predicted.
    positive
        Share of labels +1.
    auc
        Area under the ROC curve; None unless both classes occur.
    loss
        Mean of the learner's own loss.
    log_loss, brier, calibration_error
        See `forks.validation.metrics`; None unless the loss is logistic, since other scores are not log-odds.
    regret
        Sum of the learner's losses less those of the best fixed linear predictor in hindsight for the whole
        stream, so that windows add up to the total. None without features.
    """

    first: int
    events: int
    mistakes: float
    majority: float
    positive: float
    auc: float | None
    loss: float
    log_loss: float | None
    brier: float | None
    calibration_error: float | None
    regret: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """Metrics in total, and in windows of consecutive events."""

    total: Metrics
    windows: list[Metrics]


def summarize(
    predictions: Predictions, *, loss: LossName, X: FloatArray | None = None, window: int | None = None
) -> Summary:
    """Summarise the predictions on a stream.

    Parameters
    ----------
    predictions
        Scores and labels of n events, as returned by `progressive`.
    loss
        Loss of the learner.
    X : ndarray, shape (n, d), float64
        Vectors of the events; regret is measured against the best linear predictor on them.
    window
        Number of events in a window, >= 1; the last window may have fewer. By default a tenth of all events,
        rounded up.

    Raises
    ------
    ValueError
        There are no events, ``X`` has another number of rows, or ``window`` is below 1.

    Examples
    --------
    >>> predictions = Predictions(np.array([0.0, 1.0, -1.0]), np.array([1.0, 1.0, -1.0]))
    >>> total = summarize(predictions, loss="logistic").total
    >>> total.events, total.mistakes, total.majority, total.auc
    (3, 0.3333333333333333, 0.3333333333333333, 1.0)
    """
    count = len(predictions.scores)
    if count == 0:
        raise ValueError("there are no events to summarise")
    if X is not None and len(X) != count:
        raise ValueError(f"X must have a row for each of the {count} events, not {len(X)}")
    size = -(-count // 10) if window is None else window
    if size < 1:
        raise ValueError(f"window = {window} is not accepted: it must be at least 1")
    counted = _EventCounts(predictions, loss, X)
    windows = [counted.metrics(begin, min(begin + size, count)) for begin in range(0, count, size)]
    return Summary(counted.metrics(0, count), windows)


class _EventCounts:
    """Losses and mistakes of each event, from which any range of events can be summarised."""

    def __init__(self, predictions: Predictions, loss: LossName, X: FloatArray | None) -> None:
        self._scores, labels = predictions
        self._logistic = loss == "logistic"
        self._positive = labels > 0
        self._wrong = (self._scores > 0) != self._positive
        self._majority_wrong = self._positive != majority(self._positive)
        self._losses = losses(LOSSES[loss], self._scores, labels)
        self._excess: FloatArray | None = None
        if X is not None:
            best = best_linear(X, labels, loss).scores(X)
            self._excess = self._losses - losses(LOSSES[loss], best, labels)

    def metrics(self, begin: int, end: int) -> Metrics:
        """Return the metrics of the events from number ``begin`` up to, but not including, ``end``."""
        piece = slice(begin, end)
        scores, positive = self._scores[piece], self._positive[piece]
        return Metrics(
            first=begin,
            events=end - begin,
            mistakes=float(np.mean(self._wrong[piece])),
            majority=float(np.mean(self._majority_wrong[piece])),
            positive=float(np.mean(positive)),
            auc=auc(scores, positive),
            loss=float(np.mean(self._losses[piece])),
            log_loss=log_loss(scores, positive) if self._logistic else None,
            brier=brier_score(scores, positive) if self._logistic else None,
            calibration_error=calibration_error(scores, positive) if self._logistic else None,
            regret=None if self._excess is None else float(np.sum(self._excess[piece])),
        )
