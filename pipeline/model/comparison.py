"""Compare champion and challengers on a partition's labelled events, since it came to this worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from forks import LOSSES
from forks.learning.event_loop import loss_values
from pipeline.config.settings import CHAMPION
from pipeline.features.regression import RegressionTarget
from pipeline.features.target import Target
from pipeline.model.model import Model
from pipeline.model.shadow import Floats


class LearnerMetrics(NamedTuple):
    """Sums over the labelled events of a learner's predictions."""

    events: int
    mistakes: int | None = None
    """None where numbers are predicted."""
    log_loss: float | None = None
    """In nats; None for a learner whose scores are not log-odds."""
    absolute_error: float | None = None
    """In the unit of the labels; None where classes are predicted, as the next."""
    squared_error: float | None = None


class Comparison:
    """The metrics of champion and challengers. They are not saved.

    Parameters
    ----------
    model
        The model whose champion and challengers are compared.

    Attributes
    ----------
    learner_metrics
        Metrics by learner. The dictionary is replaced, never changed, so that another thread may read it.
    """

    def __init__(self, model: Model) -> None:
        self._target = model.target
        losses = {CHAMPION: model.learner.settings.loss}
        losses |= {name: shadow.loss for name, shadow in model.challengers.items()}
        regression = isinstance(self._target, RegressionTarget)
        self.learner_metrics = {
            name: LearnerMetrics(0, None, None, 0.0, 0.0)
            if regression
            else LearnerMetrics(0, 0, 0.0 if loss == "logistic" else None)
            for name, loss in losses.items()
        }

    def add(
        self, scores: Floats, challengers: Sequence[Mapping[str, float]], watch_ratios: Sequence[float]
    ) -> None:
        """Count labelled events that the current learners predicted.

        Parameters
        ----------
        scores
            Scores of the champion, shape (n,).
        challengers
            Scores of the challengers by name, n of them.
        watch_ratios
            Labels of the events, n of them.
        """
        if not challengers:
            return
        values = np.array(watch_ratios)
        self.learner_metrics = {
            name: _add_scores(
                metrics,
                scores if name == CHAMPION else np.array([each[name] for each in challengers]),
                values,
                self._target,
            )
            for name, metrics in self.learner_metrics.items()
        }


def _add_scores(metrics: LearnerMetrics, scores: Floats, values: Floats, target: Target) -> LearnerMetrics:
    """Return the metrics with more events."""
    events, log_loss = metrics.events + len(values), metrics.log_loss
    if metrics.mistakes is None:
        errors = np.array(target.predictions([*scores])) - np.array(target.labels(values))
        return LearnerMetrics(
            events,
            absolute_error=(metrics.absolute_error or 0.0) + float(np.abs(errors).sum()),
            squared_error=(metrics.squared_error or 0.0) + float((errors * errors).sum()),
        )
    labels = target.are_positive(values)
    if log_loss is not None:
        log_loss += float(loss_values(scores, np.where(labels, 1.0, -1.0), LOSSES["logistic"]).sum())
    mistakes = int(np.sum((scores > 0.0) != labels))
    return LearnerMetrics(events, metrics.mistakes + mistakes, log_loss)
