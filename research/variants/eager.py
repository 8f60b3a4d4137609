"""RBP and Projectron that learn from every hinge loss, not only from mistakes."""

from __future__ import annotations

from forks.arrays import FloatArray
from forks.rivals import RBP, Projectron

A_MISTAKE = 0.0
"""Score of a tie, from which both learn whatever the label is."""


class EagerRBP(RBP):
    """RBP that treats every event with a hinge loss as a mistake.

    "All algorithms are trained using hinge loss" (FORKS, section 5.1) can be read like this, while RBP's own
    paper learns only from mistakes. An event costs as much as with `forks.rivals.RBP`.

    Examples
    --------
    >>> learner = EagerRBP(1, budget=2)
    >>> learner.learn_one([0.0], 1), learner.learn_one([1.0], 1)  # right, with a margin below 1
    (1.0, 0.3934693402873666)
    >>> learner.stored
    2
    """

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        if y * score < 1.0:
            super()._learn(event, y, A_MISTAKE, weight)


class EagerProjectron(Projectron):
    """Projectron that treats every event with a hinge loss as a mistake, as `EagerRBP`, with step size 1.

    Examples
    --------
    >>> learner = EagerProjectron(1, budget=2)
    >>> learner.learn_one([0.0], 1), learner.learn_one([1.0], 1)  # right, with a margin below 1
    (1.0, 0.3934693402873666)
    >>> learner.stored
    2
    """

    def _learn(self, event: FloatArray, y: float, score: float, weight: float, /) -> None:
        if y * score < 1.0:
            super()._learn(event, y, A_MISTAKE, weight)
