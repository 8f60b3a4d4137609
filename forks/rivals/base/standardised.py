"""A wrapper that standardises the vectors of a rival."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from forks.algorithm.moments import standardize, update_moments
from forks.arrays import FloatArray
from forks.rivals.base.learner import VectorRival
from forks.state import State

PREFIX = "inner_"
"""Prefix of the wrapped rival's entries in the state."""


class Standardised(VectorRival):
    """Wrapper that subtracts the running mean from each vector and divides it by the standard deviation.

    The papers' learners use one kernel width for all columns, and so need columns of one scale, which a
    stream does not have by itself. The moments are those of the vectors learned so far
    (`forks.algorithm.moments`, also for constant columns and outliers): an event is scored and learned with
    the moments before it, and then added to them. Points that the rival stored keep the scale that they had.
    An event costs O(dimension) more than with the rival alone.

    Parameters
    ----------
    inner
        The rival, which has learned nothing yet; it must not be used elsewhere afterwards.

    Examples
    --------
    >>> from forks.rivals.perceptron import Perceptron
    >>> learner = Standardised(Perceptron(1))
    >>> losses = learner.learn_many([[1000.0], [3000.0]] * 10, [-1, 1] * 10)
    >>> learner.predict_one([1000.0]) < 0 < learner.predict_one([3000.0])
    True
    """

    arrays: ClassVar = {"mean": (float, ("dimension",)), "squares": (float, ("dimension",))}
    numbers: ClassVar = {"count": int}

    def __init__(self, inner: VectorRival) -> None:
        super().__init__(inner.dimension)
        self.loss = inner.loss
        self.no_weights = inner.no_weights
        self.inner = inner
        self.count = 0
        self.mean = np.zeros(self.dimension)
        self.squares = np.zeros(self.dimension)

    def state(self) -> State:
        """Return the whole state: copies of arrays, and plain numbers."""
        return super().state() | {PREFIX + name: value for name, value in self.inner.state().items()}

    def with_state(self, state: State) -> Self:
        """Return a learner with the same parameters, restored from `state`.

        Raises
        ------
        ValueError
            ``state`` lacks an entry, or has one of another type or shape than this learner's.
        """
        learner = super().with_state(state)
        learner.inner = self.inner.with_state(
            {name.removeprefix(PREFIX): value for name, value in state.items() if name.startswith(PREFIX)}
        )
        return learner

    def _score(self, event: FloatArray) -> float:
        return self.inner._score(self._standard(event))

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        self.inner._learn(self._standard(event), y, score, weight)
        self.count += 1
        update_moments(event, self.count, self.mean, self.squares)

    def _standard(self, event: FloatArray) -> FloatArray:
        standard = np.empty_like(event)
        standardize(event, self.count, self.mean, self.squares, standard)
        return standard
