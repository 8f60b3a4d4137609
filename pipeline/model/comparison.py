"""How champion and challengers have done on a partition's labelled events, since it came to the worker."""

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
    """What a learner has come to."""

    events: int
    mistakes: int
    log_loss: float | None
    """The sum, in nats; None for a learner without log-odds."""


class _LabelledOutcome(msgspec.Struct):
    """What counts of an outcome."""

    score: float
    prediction_sequence: int
    watch_ratio: float | None
    status: Status
    challengers: dict[str, float] = {}


_OUTCOMES: Final = msgspec.json.Decoder(_LabelledOutcome)


class Comparison:
    """Counts; nothing of it is saved.

    Parameters
    ----------
    model
        Whose champion and challengers are compared.
    """

    def __init__(self, model: Model) -> None:
        losses = {CHAMPION: model.learner.settings.loss}
        losses |= {name: shadow.loss for name, shadow in model.challengers.items()}
        self.learner_metrics = {
            name: LearnerMetrics(0, 0, 0.0 if loss == "logistic" else None) for name, loss in losses.items()
        }
        """By learner. It is replaced, never changed, so that another thread may read it."""

    def add(self, outcomes: Sequence[bytes], since: int) -> None:
        """Count the labelled ones of predictions that the learners of now made, from that sequence on."""
        told = map(_OUTCOMES.decode, outcomes)
        judged = [each for each in told if each.status == "labelled" and each.prediction_sequence >= since]
        if not judged:
            return
        watched = np.array(TARGET.positives(each.watch_ratio or 0.0 for each in judged))
        learner_metrics = {}
        for name, standing in self.learner_metrics.items():
            if name == CHAMPION:
                scores = np.array([each.score for each in judged])
            else:
                scores = np.array([each.challengers[name] for each in judged])
            learner_metrics[name] = _added(standing, scores, watched)
        self.learner_metrics = learner_metrics


def _added(standing: LearnerMetrics, scores: Floats, watched: Booleans) -> LearnerMetrics:
    total = standing.log_loss
    if total is not None:
        total += float(loss_values(scores, np.where(watched, 1.0, -1.0), LOSSES["logistic"]).sum())
    mistakes = int(np.sum((scores > 0.0) != watched))
    return LearnerMetrics(standing.events + len(watched), standing.mistakes + mistakes, total)
