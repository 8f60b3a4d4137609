"""Mistakes of a learner on a stream, counted from the first event and as the papers' authors count them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from forks.arrays import FloatArray
from research.harness.labelled import Labelled


class Learner(Protocol):
    """What an experiment asks of a learner."""

    def predict_and_learn_many(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Predict and then learn each row in turn; return the scores."""


class StreamResult(NamedTuple):
    """What came of a stream.

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

        Known of FORKS. That others with a first stage (NOGD, SkeGD) were counted alike is inferred: on sets
        where nothing is far below the majority class, their printed figures are.
        """
        return float(np.sum(self.wrong[self.stage_one :]) / len(self.wrong))


def no_stages(_: Any) -> bool:
    """Say of a learner that it is not in a first stage: it has none."""
    return False


def run_stream(
    learner: Learner, data: Labelled, in_stage_one: Callable[[Any], bool] = no_stages
) -> StreamResult:
    """Predict and learn each row in turn. A score of 0 says -1.

    Seconds are those of this process, so that other work on the machine counts little; looking for the
    end of stage 1 is not among them.

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
