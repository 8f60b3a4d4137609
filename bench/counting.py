"""Mistakes of a FORKS learner on a set, counted honestly and as the paper's authors did."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench.sets import Labelled
from forks import Forks
from forks.arrays import FloatArray


class Played(NamedTuple):
    """What came of a stream.

    Parameters
    ----------
    wrong : (rounds,) float64, 1 where the prediction was wrong
    stage_one : rounds until the feature map was there
    """

    wrong: FloatArray
    stage_one: int

    @property
    def honest(self) -> float:
        """Share of rounds with a wrong prediction, from the first."""
        return float(np.mean(self.wrong))

    @property
    def authors(self) -> float:
        """Wrong predictions after stage 1, as a share of all rounds."""
        return float(np.sum(self.wrong[self.stage_one :]) / len(self.wrong))


def play(learner: Forks, data: Labelled) -> Played:
    """Predict and learn each row in turn."""
    scores = np.empty(len(data.y))
    start = 0
    while start < len(scores) and learner.state()["stage"] == 1:
        scores[start] = learner.predict_one(data.X[start])
        learner.learn_one(data.X[start], data.y[start])
        start += 1
    scores[start:] = learner.predict_and_learn_many(data.X[start:], data.y[start:])
    return played_of(scores, data.y, start)


def played_of(scores: FloatArray, y: FloatArray, stage_one: int) -> Played:
    """Return what came of scores (rounds,) for labels ``y``."""
    return Played(((scores > 0) != (y > 0)).astype(np.float64), stage_one)
