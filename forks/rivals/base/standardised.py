"""Any rival, with its vectors standardised on the way in."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from forks.algorithm.moments import standardize, update_moments
from forks.arrays import FloatArray
from forks.rivals.base.learner import VectorRival
from forks.state import State

PREFIX = "inner_"
"""Before the names of what the state has of the rival inside."""


class Standardised(VectorRival):
    """Gives a rival each vector less its running mean, divided by the running standard deviation.

    The papers' learners take columns of one scale, and one width of the kernel for all of them, which a
    stream's columns do not have by themselves. The moments are those of the vectors learned so far
    (`forks.algorithm.moments`, which also says what becomes of constant columns and wild values), so an event
    is scored and learned by what was known before it, and only then counted. What the rival stored keeps the
    scale that it had then. An event costs O(dimension) more than the rival's own.

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
        self.inner = inner
        self.count = 0
        self.mean = np.zeros(self.dimension)
        self.squares = np.zeros(self.dimension)

    def state(self) -> State:
        """Return all that was learned: copies of arrays, and plain numbers."""
        return super().state() | {PREFIX + name: value for name, value in self.inner.state().items()}

    def with_state(self, state: State) -> Self:
        """Return a learner of the same parameters that knows what the one of this `state` knew.

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

    def _learn(self, event: FloatArray, y: float, score: float) -> None:
        self.inner._learn(self._standard(event), y, score)
        self.count += 1
        update_moments(event, self.count, self.mean, self.squares)

    def _standard(self, event: FloatArray) -> FloatArray:
        standard = np.empty_like(event)
        standardize(event, self.count, self.mean, self.squares, standard)
        return standard
