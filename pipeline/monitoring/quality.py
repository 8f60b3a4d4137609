"""How well learners predict, over a sliding window of a partition's last labelled events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, compress
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.validation.metrics import (
    auc,
    calibration_error,
    log_loss,
    mean_absolute_error,
    root_mean_squared_error,
)
from pipeline.config.settings import CHAMPION
from pipeline.features.regression import RegressionTarget
from pipeline.features.target import Target
from pipeline.model.model import Model
from pipeline.monitoring.drift import DriftDetector
from pipeline.task.columns import OutcomeColumns

Floats: TypeAlias = NDArray[np.float64]

WINDOW: Final = 10_000
"""Labelled events in a window, at most."""
WARM_UP: Final = 5_000
"""Labels that the champion learns before drift is looked for: until then it is worse because it is new."""
RUNNING_MEANS: Final = "baseline:running_means"
"""The sum of the running means of the first two entities; no learner can have the name."""
RUNNING_MEAN: Final = "baseline:running_mean"
"""The mean of all labels so far, where there are no entities."""
CONSTANT: Final = "baseline:constant"
"""The same prediction for all events of the window: the more frequent class, or the mean of the labels."""


class LearnerQuality(msgspec.Struct, frozen=True):
    """Quality of a learner or baseline over a window; what is not defined for it is None."""

    name: str
    mistakes: float | None = None
    """Share of events of the other class than predicted."""
    auc: float | None = None
    log_loss: float | None = None
    """In nats."""
    calibration_error: float | None = None
    mean_absolute_error: float | None = None
    """In the unit of the labels, as the next."""
    root_mean_squared_error: float | None = None


def error_of(quality: LearnerQuality) -> float | None:
    """Return the share of mistakes, or the mean absolute error where numbers are predicted."""
    return quality.mean_absolute_error if quality.mistakes is None else quality.mistakes


class WindowMetrics(NamedTuple):
    """Quality over the window of one partition."""

    events: int
    """Labelled events in the window."""
    learners: Mapping[str, LearnerQuality]
    """By learner or baseline."""


class DriftMetrics(NamedTuple):
    """What the detector of drift has found in one partition: see `pipeline.monitoring.drift`."""

    evidence: float
    threshold: float
    alarms: int


class QualityWindow:
    """The last labelled events of one partition, with the scores of all learners and of the running means.

    Parameters
    ----------
    model
        Names the learners, and says what is predicted.
    size
        The largest number of events.
    """

    def __init__(self, model: Model, size: int = WINDOW) -> None:
        self.drift = DriftDetector()
        self._size = size
        self._target: Target = model.target
        self._regression = isinstance(self._target, RegressionTarget)
        self._learners = (CHAMPION, *model.challengers)
        losses = [model.learner.settings.loss, *(each.loss for each in model.challengers.values())]
        self._log_odds = frozenset(compress(self._learners, [loss == "logistic" for loss in losses]))
        self._baseline = RUNNING_MEANS if model.mean_columns else RUNNING_MEAN
        self._columns: Floats = np.empty((len(self._learners) + 2, size))
        """Rows: values of labels, predictions of the running means, scores of each learner."""
        self._next = self._count = 0
        self._known = model.statistics.everything[0].tolist()
        """Events, labels and values learned before the next outcomes."""

    def add(self, outcomes: OutcomeColumns, model: Model, since: int) -> None:
        """Take the outcomes of a batch.

        Parameters
        ----------
        outcomes
            The outcomes.
        model
            The model after the batch.
        since
            Sequence of the first prediction of the current learners. Earlier ones are left out, as are
            corrections.
        """
        known, self._known = self._known, model.statistics.everything[0].tolist()
        if not len(outcomes):
            return
        values, chosen = outcomes.values, ~outcomes.expired
        if since:
            chosen &= outcomes.prediction_sequences >= since
        chosen[outcomes.corrections.rows] = False
        whole = bool(chosen.all())
        rows = slice(None) if whole else chosen
        columns = np.empty((len(self._columns), int(np.count_nonzero(chosen))))
        if not columns.size:
            return
        columns[0], columns[1] = values[rows], self._running_means(outcomes.means[rows], known)
        columns[2] = outcomes.scores[rows]
        if len(self._learners) > 1:
            scores = compress(outcomes.challengers, chosen.tolist())
            found = [{} if each is None else each.by_name() for each in scores]
            columns[3:] = np.array([[each[name] for name in self._learners[1:]] for each in found]).T
        if model.learner.updates >= WARM_UP:
            self.drift.add(self._differences(columns))
        self._store(columns)

    def _running_means(self, means: Floats, known: Sequence[float]) -> Floats:
        """Return how far the sum of two running means lies above its threshold, or the value it predicts.

        It is that of `forks report`, but with the labels known before the batch in place of those known
        at the prediction.
        """
        events, labels, values = known[:3]
        mean = ((values if self._regression else labels) + 0.5) / (events + 1.0)
        margin: Floats = means.sum(axis=1) - (means.shape[1] - 1) * mean - 0.5
        if isinstance(self._target, RegressionTarget):
            return self._target.threshold + 2.0 * self._target.cap * margin
        return margin

    def _differences(self, columns: Floats) -> Floats:
        """Return the champion's errors less those of the running means, in [-1, 1]."""
        values, means, scores = columns[:3]
        if isinstance(self._target, RegressionTarget):
            target, labels = self._target, _clipped(self._target, values)
            errors = [np.abs(each - labels) for each in (target.threshold + target.scale * scores, means)]
            ours, theirs = (np.minimum(each / target.cap, 1.0) for each in errors)
            difference: Floats = ours - theirs
            return difference
        positive = self._target.are_positive(values)
        wrong = ((scores > 0.0) != positive).astype(np.float64)
        surplus: Floats = wrong - ((means > 0.0) != positive)
        return surplus

    def _store(self, columns: Floats) -> None:
        columns = columns[:, -self._size :]
        count = columns.shape[1]
        head = min(count, self._size - self._next)
        self._columns[:, self._next : self._next + head] = columns[:, :head]
        self._columns[:, : count - head] = columns[:, head:]
        self._next = (self._next + count) % self._size
        self._count = min(self._size, self._count + count)

    def measure(self) -> WindowMetrics:
        """Return the quality of all learners and baselines. It costs a sort of the window for each."""
        values, means, *scores = self._columns[:, : self._count]
        if not self._count:
            return WindowMetrics(0, {})
        predicted = dict(zip(self._learners, scores, strict=True))
        if isinstance(self._target, RegressionTarget):
            target, labels = self._target, _clipped(self._target, values)
            predicted = {name: target.threshold + target.scale * each for name, each in predicted.items()}
            predicted |= {self._baseline: means, CONSTANT: np.full(len(labels), labels.mean())}
            found = [_errors(name, each, labels) for name, each in predicted.items()]
        else:
            positive, predicted = self._target.are_positive(values), predicted | {self._baseline: means}
            found = [
                _classes(name, each, positive, log_odds=name in self._log_odds)
                for name, each in predicted.items()
            ]
            share = float(positive.mean())
            found.append(LearnerQuality(CONSTANT, mistakes=min(share, 1.0 - share), auc=0.5))
        return WindowMetrics(self._count, {each.name: each for each in found})


def _clipped(target: RegressionTarget, values: Floats) -> Floats:
    """Return the labels that a learner sees of values."""
    return target.threshold + np.clip(values - target.threshold, -target.cap, target.cap)


def _classes(name: str, scores: Floats, positive: NDArray[np.bool_], *, log_odds: bool) -> LearnerQuality:
    return LearnerQuality(
        name,
        float(np.mean((scores > 0.0) != positive)),
        auc(scores, positive),
        log_loss(scores, positive) if log_odds else None,
        calibration_error(scores, positive) if log_odds else None,
    )


def _errors(name: str, predicted: Floats, labels: Floats) -> LearnerQuality:
    return LearnerQuality(
        name,
        mean_absolute_error=mean_absolute_error(predicted, labels),
        root_mean_squared_error=root_mean_squared_error(predicted, labels),
    )


def pooled(windows: Iterable[WindowMetrics]) -> WindowMetrics:
    """Return the quality over the windows of several partitions: means, weighted by their events.

    This is exact but for the AUC, the calibration error and the root of the mean squared error, which are
    those of a partition on average.

    Examples
    --------
    >>> found = pooled(WindowMetrics(n, {"a": LearnerQuality("a", m)}) for n, m in ((100, 0.5), (300, 0.1)))
    >>> found.events, round(found.learners["a"].mistakes, 3)
    (400, 0.2)
    """
    found = [window for window in windows if window.events]
    learners = {}
    for name in dict.fromkeys(chain.from_iterable(window.learners for window in found)):
        of_name = [(window.events, window.learners[name]) for window in found if name in window.learners]
        _, *measures = LearnerQuality.__struct_fields__
        learners[name] = LearnerQuality(name, *(_weighted_mean(of_name, measure) for measure in measures))
    return WindowMetrics(sum(window.events for window in found), learners)


def _weighted_mean(qualities: Sequence[tuple[int, LearnerQuality]], measure: str) -> float | None:
    known = [
        (events, value)
        for events, quality in qualities
        if (value := getattr(quality, measure)) is not None
        and math.isfinite(value)  # an AUC of one class is NaN
    ]
    if not known:
        return None
    return math.fsum(events * value for events, value in known) / sum(events for events, _ in known)
