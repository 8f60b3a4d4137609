"""Compare champion and challengers on a partition's labelled events, since it came to this worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from forks import LOSSES
from forks.learning.event_loop import loss_values
from pipeline.config.tree import CHAMPION
from pipeline.features.target import TARGET
from pipeline.model.model import Model
from pipeline.model.shadow import Booleans, Floats
from pipeline.records.fields import Status


class LearnerMetrics(NamedTuple):
    """Sums over the labelled events of a learner's predictions."""

    events: int
    mistakes: int
    log_loss: float | None
    """In nats; None for a learner whose scores are not log-odds."""


class _LabelledOutcome(msgspec.Struct):
    """The part of an outcome that is compared."""

    score: float
    prediction_sequence: int
    watch_ratio: float | None
    status: Status
    challengers: dict[str, float] = {}


_OUTCOMES: Final = msgspec.json.Decoder(_LabelledOutcome)


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
        losses = {CHAMPION: model.learner.settings.loss}
        losses |= {name: shadow.loss for name, shadow in model.challengers.items()}
        self.learner_metrics = {
            name: LearnerMetrics(0, 0, 0.0 if loss == "logistic" else None) for name, loss in losses.items()
        }

    def add(self, encoded: Sequence[bytes], since: int) -> None:
        """Add outcomes.

        Parameters
        ----------
        encoded
            The outcomes as JSON. Those without a label do not count.
        since
            The sequence of the first prediction that the present champion and challengers made. Outcomes of
            earlier predictions do not count.
        """
        outcomes = map(_OUTCOMES.decode, encoded)
        labelled = [
            outcome
            for outcome in outcomes
            if outcome.status == "labelled" and outcome.prediction_sequence >= since
        ]
        if not labelled:
            return
        labels = np.array(TARGET.positives(outcome.watch_ratio or 0.0 for outcome in labelled))
        learner_metrics = {}
        for name, metrics in self.learner_metrics.items():
            if name == CHAMPION:
                scores = np.array([outcome.score for outcome in labelled])
            else:
                scores = np.array([outcome.challengers[name] for outcome in labelled])
            learner_metrics[name] = _added(metrics, scores, labels)
        self.learner_metrics = learner_metrics


def _added(metrics: LearnerMetrics, scores: Floats, labels: Booleans) -> LearnerMetrics:
    """Return the metrics with more events."""
    total = metrics.log_loss
    if total is not None:
        total += float(loss_values(scores, np.where(labels, 1.0, -1.0), LOSSES["logistic"]).sum())
    mistakes = int(np.sum((scores > 0.0) != labels))
    return LearnerMetrics(metrics.events + len(labels), metrics.mistakes + mistakes, total)
