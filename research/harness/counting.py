"""Mistakes of a learner on a stream, from the first event and by the count of the papers' authors."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from forks.arrays import FloatArray
from research.harness.labelled import Labelled


class Learner(Protocol):
    """Interface of a learner in an experiment."""

    def predict_and_learn_many(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Predict and then learn each row in order; return the scores."""


class StreamResult(NamedTuple):
    """Result of one learner on one stream.

    Attributes
    ----------
    wrong : ndarray, shape (rounds,), float64
        1 where the prediction was wrong, 0 elsewhere.
    stage_one
        Number of rounds until stage 1 was over; 0 for learners without one.
    seconds
        Processor time for predicting and learning, in seconds.
    """

    wrong: FloatArray
    stage_one: int
    seconds: float

    @property
    def mistake_rate(self) -> float:
        """Share of rounds with a wrong prediction, from the first."""
        return float(np.mean(self.wrong))

    @property
    def authors_mistake_rate(self) -> float:
        """Wrong predictions after stage 1, as a share of all rounds.

        FORKS is known to be counted like this. For other learners with a first stage (NOGD, SkeGD) it is
        inferred from printed figures that lie below the majority class where no honest count does.
        """
        return float(np.sum(self.wrong[self.stage_one :]) / len(self.wrong))


def no_stages(_: Any) -> bool:
    """Return False: the learner has no first stage."""
    return False


def run_stream(
    learner: Learner, data: Labelled, in_stage_one: Callable[[Any], bool] = no_stages
) -> StreamResult:
    """Predict and then learn each row in order. A score of 0 predicts -1.

    The time is this process's processor time, so that other work on the machine matters little. It does not
    include the checks whether stage 1 is over.

    Parameters
    ----------
    learner
        Learner that has learned nothing yet.
    data
        Rows to predict and learn, in order.
    in_stage_one
        Function that returns whether a learner is in its first stage.
    """
    scores = np.empty(len(data.y))
    seconds, start = 0.0, 0
    while start < len(scores) and in_stage_one(learner):
        seconds += _timed(learner, data, slice(start, start + 1), scores)
        start += 1
    seconds += _timed(learner, data, slice(start, None), scores)
    return StreamResult(((scores > 0) != (data.y > 0)).astype(np.float64), start, seconds)


def _timed(learner: Learner, data: Labelled, rows: slice, scores: FloatArray) -> float:
    X, y = data.X[rows], data.y[rows]
    before = time.process_time()
    scores[rows] = learner.predict_and_learn_many(X, y)
    return time.process_time() - before
