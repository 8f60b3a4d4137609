"""Compare champion and challengers on a partition's labelled events, since it came to this worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from forks import LOSSES
from forks.learning.event_loop import loss_values
from pipeline.config.tree import CHAMPION
from pipeline.model.model import Model
from pipeline.model.shadow import Booleans, Floats


class LearnerMetrics(NamedTuple):
    """Sums over the labelled events of a learner's predictions."""

    events: int
    mistakes: int
    log_loss: float | None
    """In nats; None for a learner whose scores are not log-odds."""


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
        self.learner_metrics = {
            name: LearnerMetrics(0, 0, 0.0 if loss == "logistic" else None) for name, loss in losses.items()
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
        labels = self._target.are_positive(np.array(watch_ratios))
        self.learner_metrics = {
            name: _add_scores(
                metrics,
                scores if name == CHAMPION else np.array([each[name] for each in challengers]),
                labels,
            )
            for name, metrics in self.learner_metrics.items()
        }


def _add_scores(metrics: LearnerMetrics, scores: Floats, labels: Booleans) -> LearnerMetrics:
    """Return the metrics with more events."""
    log_loss = metrics.log_loss
    if log_loss is not None:
        log_loss += float(loss_values(scores, np.where(labels, 1.0, -1.0), LOSSES["logistic"]).sum())
    mistakes = int(np.sum((scores > 0.0) != labels))
    return LearnerMetrics(metrics.events + len(labels), metrics.mistakes + mistakes, log_loss)
