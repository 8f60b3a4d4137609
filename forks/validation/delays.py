"""Streams of events with delayed labels, and the order of predictions and labels."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from forks.arrays import FloatArray

X = TypeVar("X")


class Event(NamedTuple, Generic[X]):
    """An event of a stream.

    Attributes
    ----------
    x
        Input of the learner.
    y
        Label.
    moment
        Time of the prediction.
    delay
        Time from the prediction until the label is known, >= 0, in the unit of ``moment``.

    Examples
    --------
    >>> Event([0.5, 1.0], 1.0, moment=10, delay=3).y
    1.0
    """

    x: X
    y: float
    moment: float
    delay: float


class QAStep(NamedTuple, Generic[X]):
    """A question or an answer: an event to predict, or an event whose label is known now.

    Attributes
    ----------
    number
        Number of the event in the stream, from 0.
    event
        The event.
    is_answer
        False for a question, True for an answer.
    """

    number: int
    event: Event[X]
    is_answer: bool


def without_delay(X: ArrayLike, y: ArrayLike) -> Iterator[Event[FloatArray]]:
    """Yield the rows of ``X``, (n, d), as events whose labels ``y``, (n,), are known at once.

    Raises
    ------
    ValueError
        There is not one label for each row.

    Examples
    --------
    >>> [(step.number, step.is_answer) for step in simulate_qa(without_delay([[0.1], [0.2]], [1, -1]))]
    [(0, False), (0, True), (1, False), (1, True)]
    """
    rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(rows) != len(labels):
        raise ValueError(f"y must have one label for each of the {len(rows)} rows of X, not {len(labels)}")
    for number, (row, label) in enumerate(zip(rows, labels.tolist(), strict=True)):
        yield Event(row, label, moment=number, delay=0)


def simulate_qa(stream: Iterable[Event[X]]) -> Iterator[QAStep[X]]:
    """Yield each event of ``stream`` as a question, in order, and as an answer once its label is known.

    An answer that is due at the moment of a question comes before it, but never before its own question.
    Answers are ordered by the time at which they are due, then by their events' numbers; answers that are not
    due when the stream ends come last. This is the order of `river.stream.simulate_qa` with a delay for each
    event. Only events that wait for their label are held in memory.

    Raises
    ------
    ValueError
        A delay is negative or not a number, or a moment is not finite; the message names the event.

    Examples
    --------
    >>> plays = [Event("a", 1, moment=0, delay=30), Event("b", -1, moment=10, delay=5), Event("c", 1, 15, 0)]
    >>> [(step.event.x, step.is_answer) for step in simulate_qa(plays)]
    [('a', False), ('b', False), ('b', True), ('c', False), ('c', True), ('a', True)]
    """
    # The number is unique, so that heapq never compares events.
    waiting: list[tuple[float, int, Event[X]]] = []
    for number, event in enumerate(stream):
        if not (np.isfinite(event.moment) and event.delay >= 0):
            raise ValueError(
                f"event {number}: moment must be finite and delay >= 0, "
                f"not moment = {event.moment!r} and delay = {event.delay!r}"
            )
        while waiting and waiting[0][0] <= event.moment:
            _, due, answer = heapq.heappop(waiting)
            yield QAStep(due, answer, is_answer=True)
        heapq.heappush(waiting, (event.moment + event.delay, number, event))
        yield QAStep(number, event, is_answer=False)
    while waiting:
        _, due, answer = heapq.heappop(waiting)
        yield QAStep(due, answer, is_answer=True)
