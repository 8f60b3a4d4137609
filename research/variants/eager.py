"""Two learners that paper and toolbox let learn from mistakes only, learning from every hinge loss."""

from __future__ import annotations

from forks.arrays import FloatArray
from forks.rivals import RBP, Projectron

A_MISTAKE = 0.0
"""A score at which both learn, whatever the label is: a tie."""


class EagerRBP(RBP):
    """RBP that takes a hinge loss for a mistake.

    "All algorithms are trained using hinge loss" (FORKS, section 5.1) can be read like that, while RBP's own
    paper knows mistakes only. An event costs as much as one of `forks.rivals.RBP`.

    Examples
    --------
    >>> learner = EagerRBP(1, budget=2)
    >>> learner.learn_one([0.0], 1), learner.learn_one([1.0], 1)  # right, with a margin below 1
    (1.0, 0.3934693402873666)
    >>> learner.stored
    2
    """

    def _learn(self, event: FloatArray, y: float, score: float) -> None:
        if y * score < 1.0:
            super()._learn(event, y, A_MISTAKE)


class EagerProjectron(Projectron):
    """Projectron that takes a hinge loss for a mistake, as `EagerRBP` does; its steps stay 1 long.

    Examples
    --------
    >>> learner = EagerProjectron(1, budget=2)
    >>> learner.learn_one([0.0], 1), learner.learn_one([1.0], 1)  # right, with a margin below 1
    (1.0, 0.3934693402873666)
    >>> learner.stored
    2
    """

    def _learn(self, event: FloatArray, y: float, score: float) -> None:
        if y * score < 1.0:
            super()._learn(event, y, A_MISTAKE)
