"""How champion and challengers have done on a partition's labelled events, since it came to the worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from forks import LOSSES
from forks.rounds import loss_values
from pipeline.config import CHAMPION
from pipeline.labels import WATCHED
from pipeline.model import Model
from pipeline.plan import Closing
from pipeline.shadow import Flags, Floats


class Standing(NamedTuple):
    """What a learner has come to."""

    events: int
    mistakes: int
    log_loss: float | None
    """The sum, in nats; None for a learner without log-odds."""


class _Said(msgspec.Struct):
    challengers: dict[str, float]


_SAID: Final = msgspec.json.Decoder(_Said)


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

    def add(self, closings: Sequence[Closing], since: int) -> None:
        """Count the labelled ones of predictions that the learners of now made, from that sequence on."""
        judged = [
            closing
            for closing in closings
            if closing.label_timestamp is not None and closing.prediction.sequence >= since
        ]
        if not judged:
            return
        watched = np.array([(closing.watch_ratio or 0.0) > WATCHED for closing in judged])
        said = [_SAID.decode(b"{" + closing.prediction.conclusion[1:]).challengers for closing in judged]
        standings = {}
        for name, standing in self.standings.items():
            if name == CHAMPION:
                scores = np.array([closing.prediction.score for closing in judged])
            else:
                scores = np.array([each[name] for each in said])
            standings[name] = _more(standing, scores, watched)
        self.standings = standings


def _more(standing: Standing, scores: Floats, watched: Flags) -> Standing:
    total = standing.log_loss
    if total is not None:
        total += float(loss_values(scores, np.where(watched, 1.0, -1.0), LOSSES["logistic"]).sum())
    mistakes = int(np.sum((scores > 0.0) != watched))
    return Standing(standing.events + len(watched), standing.mistakes + mistakes, total)
