"""Biased matrix factorisation, learned online."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from forks.arrays import FloatArray
from forks.rivals.base.learner import at_least, not_negative, positive
from research.rivals.pairs import Entity, PairRival

# Factors start near zero, but not at zero, where the gradient vanishes.
START = 0.1


class MatrixFactorisation(PairRival):
    """Stochastic gradient descent on the estimate r = m + b_user + b_item + p_user' q_item of a pair's label.

    Labels count as 0 and 1, and the score is r - 1/2. The model is Eq. 4 of the paper, and the steps are
    those after its Eq. 5, which reduce the regularised squared error; m is the mean of the labels so far. (On
    KuaiRec the logistic loss was worse than the squared one.)

    A user and an item are integers of 64 bits. `learn_one` returns the hinge loss, as other rivals do.

    Parameters
    ----------
    rank
        Length of the factors p and q, >= 1.
    step
        Step size, gamma in the paper, > 0.
    decay
        Regularisation, lambda in the paper, >= 0.
    seed
        Seed of the factors' first values, which are drawn in the order in which entities are learned.

    References
    ----------
    Koren, Bell and Volinsky, Matrix Factorization Techniques for Recommender Systems, Computer 42, 2009.

    Examples
    --------
    >>> ann, bob, film, another = 1, 2, 1, 2
    >>> model = MatrixFactorisation()
    >>> losses = model.learn_many([(ann, film)] * 10, [1] * 10)
    >>> model.predict_one((ann, film)) > model.predict_one((bob, another)) > 0
    True
    """

    # A row holds an entity's factors and then its bias.
    numbers: ClassVar = {"labels": float, "count": int}

    def __init__(self, *, rank: int = 8, step: float = 0.05, decay: float = 0.1, seed: int = 0) -> None:
        self._rank = at_least("rank", rank, 1)
        self._step = positive("step", step)
        self._decay = not_negative("decay", decay)
        self._seed = seed
        self.labels = 0.5
        self.count = 1
        super().__init__(columns=rank + 1)

    def _rebuild_derived(self) -> None:
        super()._rebuild_derived()
        self._rng = np.random.default_rng(self._seed)
        self._rng.standard_normal(self._rank * len(self.entities))  # skip the draws of known entities

    def _initial_row(self) -> FloatArray:
        return np.append(START * self._rng.standard_normal(self._rank), 0.0)

    def _score(self, event: tuple[Entity, Entity]) -> float:
        user, item = (self._row(entity) for entity in event)
        estimate = self.labels / self.count + sum(float(row[-1]) for row in (user, item) if row is not None)
        if user is not None and item is not None:
            estimate += float(user[:-1] @ item[:-1])
        return estimate - 0.5

    def _learn(self, event: tuple[Entity, Entity], y: float, _score: float, _weight: float, /) -> None:
        for entity in event:
            self._add_if_new(entity)
        slope = self._score(event) - y / 2.0  # a new entity has factors now, which change the score
        user, item = (self.rows[self._row_index[entity]] for entity in event)
        of_user, of_item = slope * item[:-1], slope * user[:-1]
        user[:-1] -= self._step * (of_user + self._decay * user[:-1])
        item[:-1] -= self._step * (of_item + self._decay * item[:-1])
        for row in (user, item):
            row[-1] -= self._step * (slope + self._decay * row[-1])
        self.labels += float(y > 0)
        self.count += 1
