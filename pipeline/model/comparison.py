"""How champion and challengers have done on a partition's labelled events, since it came to the worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from forks import LOSSES
from forks.learning.event_loop import loss_values
from pipeline.config.tree import CHAMPION
from pipeline.features.target import WATCHED
from pipeline.model.model import Model
from pipeline.model.shadow import Flags, Floats
from pipeline.records.fields import Status


class Standing(NamedTuple):
    """What a learner has come to."""

    events: int
    mistakes: int
    log_loss: float | None
    """The sum, in nats; None for a learner without log-odds."""


class _Told(msgspec.Struct):
    """What counts of an outcome."""

    score: float
    prediction_sequence: int
    watch_ratio: float | None
    status: Status
    challengers: dict[str, float] = {}


_TOLD: Final = msgspec.json.Decoder(_Told)


class Tally:
    """Counts; nothing of it is saved.

    Parameters
    ----------
    model
        Whose champion and challengers are compared.
    """

    def __init__(self, model: Model) -> None:
        losses = {CHAMPION: model.learner.settings.loss}
        losses |= {name: shadow.loss for name, shadow in model.challengers.items()}
        self.standings = {
            name: Standing(0, 0, 0.0 if loss == "logistic" else None) for name, loss in losses.items()
        }
        """By learner. It is replaced, never changed, so that another thread may read it."""

    def add(self, outcomes: Sequence[bytes], since: int) -> None:
        """Count the labelled ones of predictions that the learners of now made, from that sequence on."""
        told = map(_TOLD.decode, outcomes)
        judged = [each for each in told if each.status == "labelled" and each.prediction_sequence >= since]
        if not judged:
            return
        watched = np.array([(each.watch_ratio or 0.0) > WATCHED for each in judged])
        standings = {}
        for name, standing in self.standings.items():
            if name == CHAMPION:
                scores = np.array([each.score for each in judged])
            else:
                scores = np.array([each.challengers[name] for each in judged])
            standings[name] = _more(standing, scores, watched)
        self.standings = standings


def _more(standing: Standing, scores: Floats, watched: Flags) -> Standing:
    total = standing.log_loss
    if total is not None:
        total += float(loss_values(scores, np.where(watched, 1.0, -1.0), LOSSES["logistic"]).sum())
    mistakes = int(np.sum((scores > 0.0) != watched))
    return Standing(standing.events + len(watched), standing.mistakes + mistakes, total)
