"""Progressive validation of any learner on any stream of events."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from forks.arrays import FloatArray
from forks.validation.delays import Event, simulate_qa

X = TypeVar("X")
X_contra = TypeVar("X_contra", contravariant=True)


class Learner(Protocol[X_contra]):
    """Interface of a learner to validate, such as `forks.Forks`, which predicts and learns single events."""

    def predict_one(self, x: X_contra, /) -> float:
        """Return the score of ``x``, a finite number: positive for the label +1."""
        ...

    def learn_one(self, x: X_contra, y: float, /) -> object:
        """Learn the label ``y`` of ``x``, -1 or +1."""
        ...


class Predictions(NamedTuple):
    """A learner's scores on a stream, with the labels.

    Attributes
    ----------
    scores : ndarray, shape (n,), float64
        Scores of the events in the stream's order, as they were when predicted.
    labels : ndarray, shape (n,), float64
        Labels of the same events, -1 or +1.
    """

    scores: FloatArray
    labels: FloatArray


def progressive(learner: Learner[X], stream: Iterable[Event[X]]) -> Predictions:
    """Predict each event of ``stream`` when it happens, and learn its label when it is known.

    The order is that of `simulate_qa`. All events count, from the first.

    Raises
    ------
    ValueError
        A label is neither -1 nor +1, or a score is not finite; the message names the event.

    Examples
    --------
    >>> from forks.validation import without_delay
    >>> class Yesterday:
    ...     score = 0.0
    ...     def predict_one(self, x):
    ...         return self.score
    ...     def learn_one(self, x, y):
    ...         self.score = y
    >>> progressive(Yesterday(), without_delay([[0.0], [0.0], [0.0]], [1, 1, -1])).scores.tolist()
    [0.0, 1.0, 1.0]
    """
    scores, labels = array("d"), array("d")
    for number, event, is_answer in simulate_qa(stream):
        if is_answer:
            learner.learn_one(event.x, event.y)
            continue
        if event.y not in {-1, 1}:
            raise ValueError(f"event {number}: the label must be -1 or +1, not {event.y!r}")
        score = float(learner.predict_one(event.x))
        if not math.isfinite(score):
            raise ValueError(f"event {number}: the learner's score must be finite, not {score}")
        scores.append(score)
        labels.append(event.y)
    return Predictions(np.array(scores), np.array(labels))
