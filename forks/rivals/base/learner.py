"""Base of the rivals: the interface of `forks.Forks`, made from the score and the update of one event."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from forks.arrays import FloatArray
from forks.checks import (
    check_label,
    check_labels,
    check_matrix,
    check_order,
    check_vector,
    check_weight,
    check_weights,
)
from forks.losses import LOSSES, LossName, loss_value
from forks.state import State, StateReader

Event = TypeVar("Event")


class Rival(ABC, Generic[Event]):
    """A learner of one event at a time.

    A subclass defines how an event is checked, scored and learned. Its class attributes `arrays` and
    `numbers` name the attributes that learning changes, which are its state. Attributes derived from the
    state are made in `_rebuild_derived`, which is called after a state was restored. Random numbers are drawn
    when the learner is made, or by a counter that is part of the state.
    """

    arrays: ClassVar[dict[str, tuple[type, tuple[int | str | None, ...]]]] = {}
    """Type (float or int) and shape of each array; a length is a number, an attribute, or None for any."""
    numbers: ClassVar[dict[str, type]] = {}
    """Type of each number: float, or int for integers >= 0."""
    loss: LossName = "hinge"
    """Loss that `learn_one` returns, of the score before learning."""
    no_weights: str | None = "this learner is not defined for weights of labels"
    """Why labels have no other weight than 1; None if they may."""

    @abstractmethod
    def _event(self, name: str, x: Any) -> Event:
        """Return the checked event for `_score` and `_learn`, or raise a ValueError that names it."""

    @abstractmethod
    def _events(self, X: Any) -> Sequence[Event]:
        """Return many checked events, or raise a ValueError that begins with X."""

    @abstractmethod
    def _score(self, event: Event) -> float:
        """Return the score without changing the learner."""

    @abstractmethod
    def _learn(self, event: Event, y: float, score: float, weight: float, /) -> None:
        """Learn the label, -1 or +1, of an event whose score is given, with the label's weight, > 0."""

    def _rebuild_derived(self) -> None:
        """Make the attributes that are derived from the state."""

    def predict_one(self, x: Any) -> float:
        """Return the score of an event; its sign is the label.

        Raises
        ------
        ValueError
            ``x`` is not an event for this learner.
        """
        return self._score(self._event("x", x))

    def learn_one(self, x: Any, y: float, weight: float = 1.0) -> float:
        """Learn the label ``y``, -1 or +1, of an event; return the loss of the score before.

        The ``weight`` of the label, from 0 to 1000, says as how many labels it counts
        (`forks.rivals.base.weights`). One of weight 0 changes nothing.

        Raises
        ------
        ValueError
            ``x`` is not an event, ``y`` is not a label, or the learner does not take the ``weight``. The
            learner has not changed.
        """
        event = self._event("x", x)
        label = check_label("y", y, self.loss)
        importance = check_weight("weight", weight)
        if importance != 1.0:
            self._refuse_weights("weight")
        score = self._score(event)
        if importance > 0.0:
            self._learn(event, label, score, importance)
        return float(loss_value(LOSSES[self.loss], score, label))

    def predict_many(self, X: Any) -> FloatArray:
        """Return the scores of events, (n,)."""
        return np.array([self._score(event) for event in self._events(X)], dtype=np.float64)

    def learn_many(self, X: Any, y: ArrayLike, weights: ArrayLike | None = None) -> FloatArray:
        """Learn events in order; return the losses of the scores before, (n,).

        ``weights`` (n,) are those of the labels, see `learn_one`; None for 1 each.
        """
        events = self._events(X)
        labels = check_labels("y", y, len(events), self.loss)
        scores = self._learn_all(events, labels, weights)
        loss = LOSSES[self.loss]
        losses = [loss_value(loss, score, label) for score, label in zip(scores, labels, strict=True)]
        return np.array(losses, dtype=np.float64)

    def predict_and_learn_many(self, X: Any, y: ArrayLike, weights: ArrayLike | None = None) -> FloatArray:
        """Predict and then learn each event in order; return the scores, (n,).

        ``weights`` are as in `learn_many`.
        """
        events = self._events(X)
        return self._learn_all(events, check_labels("y", y, len(events), self.loss), weights)

    def run(self, X: Any, y: ArrayLike, order: ArrayLike, weights: ArrayLike | None = None) -> FloatArray:
        """Score and learn events in any order: step i scores event i, n + i learns it.

        Parameters
        ----------
        X
            Events, n of them.
        y : ndarray, shape (n,)
            Labels; the label of an event that is not learned may be any number.
        order : ndarray, shape (steps,), integers
            Steps: i scores event i, n + i learns it.
        weights : ndarray, shape (n,)
            Weights of the labels, see `learn_one`; None for 1 each.

        Returns
        -------
        ndarray, shape (n,), float64
            Scores; NaN for an event without a score step.
        """
        events = self._events(X)
        n = len(events)
        steps = check_order("order", order, n)
        labels = check_labels("y", y, n, self.loss, steps[steps >= n] - n)
        importances = self._weights(weights, n)
        scores = np.full(n, np.nan)
        for step in steps.tolist():
            learns, number = divmod(step, n)
            score = self._score(events[number])
            if not learns:
                scores[number] = score
            elif importances[number] > 0.0:
                self._learn(events[number], float(labels[number]), score, importances[number])
        return scores

    def state(self) -> State:
        """Return the whole state: copies of arrays, and plain numbers."""
        arrays = {name: np.array(getattr(self, name), order="C") for name in self.arrays}
        return arrays | {name: getattr(self, name) for name in self.numbers}

    def with_state(self, state: State) -> Self:
        """Return a learner with the same parameters, restored from `state`.

        Raises
        ------
        ValueError
            ``state`` lacks an entry, or has one of another type or shape than this learner's.
        """
        reader = StateReader(state)
        learner = copy.copy(self)
        for name, (kind, shape) in self.arrays.items():
            read = reader.floats if kind is float else reader.integers
            lengths = (getattr(self, length) if isinstance(length, str) else length for length in shape)
            setattr(learner, name, read(name, *lengths))
        for name, kind in self.numbers.items():
            setattr(learner, name, reader.integer(name) if kind is int else reader.number(name))
        learner._rebuild_derived()
        return learner

    def copy(self) -> Self:
        """Return an independent learner with the same state."""
        return self.with_state(self.state())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def _learn_all(
        self, events: Sequence[Event], labels: FloatArray, weights: ArrayLike | None
    ) -> FloatArray:
        importances = self._weights(weights, len(events))
        scores = np.empty(len(events))
        for number, (event, label) in enumerate(zip(events, labels.tolist(), strict=True)):
            scores[number] = score = self._score(event)
            if importances[number] > 0.0:
                self._learn(event, label, score, importances[number])
        return scores

    def _weights(self, weights: ArrayLike | None, count: int) -> list[float]:
        """Return the weights of so many labels, or raise a ValueError that names the first bad one."""
        if weights is None:
            return [1.0] * count
        array = check_weights("weights", weights, count)
        if (other := np.flatnonzero(array != 1.0)).size:
            self._refuse_weights(f"weights[{other[0]}]")
        checked: list[float] = array.tolist()
        return checked

    def _refuse_weights(self, name: str) -> None:
        """Raise a ValueError that names a weight, unless the learner takes it."""
        if self.no_weights is not None:
            raise ValueError(f"{name} must be 1: {self.no_weights}")


class VectorRival(Rival[FloatArray]):
    """A learner of vectors; SciPy's sparse matrices are accepted too.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = at_least("dimension", dimension, 1)

    def _event(self, name: str, x: Any) -> FloatArray:
        row = check_vector(name, _dense(x).reshape(-1) if issparse(x) else x, self.dimension)
        return row.reshape(-1)

    def _events(self, X: Any) -> Sequence[FloatArray]:
        return list(check_matrix("X", _dense(X) if issparse(X) else X, self.dimension))


def _dense(sparse: Any) -> FloatArray:
    array: FloatArray = sparse.toarray()
    return array


def at_least(name: str, value: int, least: int) -> int:
    """Return ``value``, or raise a ValueError that names it if it is out of range."""
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
    return value


def positive(name: str, value: float) -> float:
    """Return ``value``, or raise a ValueError that names it if it is out of range."""
    if not value > 0.0:
        raise ValueError(f"{name} must be > 0, not {value}")
    return value


def not_negative(name: str, value: float) -> float:
    """Return ``value``, or raise a ValueError that names it if it is out of range."""
    if not value >= 0.0:
        raise ValueError(f"{name} must be >= 0, not {value}")
    return value


def known_loss(loss: LossName) -> LossName:
    """Return ``loss``, or raise a ValueError if it is not a name in `LOSSES`."""
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}, not {loss!r}")
    return loss
