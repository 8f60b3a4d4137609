"""Biased matrix factorisation, learned online."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from forks.arrays import FloatArray

# Factors start near nothing, but not at nothing: there the gradient is zero.
START = 0.1


@dataclass(slots=True)
class Entity:
    """What is learned of a user or an item.

    Parameters
    ----------
    factors : (rank,) float64
    bias : beside them
    """

    factors: FloatArray
    bias: float = 0.0


class MatrixFactorisation:
    """Estimates a pair's label by r = m + b_user + b_item + p_user' q_item, by stochastic gradient descent.

    Labels count as 0 and 1, the score is r - 1/2. The model is Eq. 4 of Koren, Bell and Volinsky (Computer
    42, 2009) and the steps are those that follow its Eq. 5, down the regularised squared error; m is the
    mean of the labels so far. (The logistic loss in place of the squared one measured worse on KuaiRec.)

    Parameters
    ----------
    rank : length of the factors p and q, >= 1
    step : gamma of the paper, > 0
    decay : lambda of the paper, >= 0
    seed : of the factors' first values, drawn in the order in which entities are learned

    Examples
    --------
    >>> model = MatrixFactorisation()
    >>> for _ in range(10):
    ...     model.learn_one(("ann", "film"), 1)
    >>> model.predict_one(("ann", "film")) > model.predict_one(("bob", "another")) > 0
    True
    """

    def __init__(self, *, rank: int = 8, step: float = 0.05, decay: float = 0.1, seed: int = 0) -> None:
        if rank < 1:
            raise ValueError(f"rank must be at least 1, not {rank}")
        if not step > 0.0:
            raise ValueError(f"step must be > 0, not {step}")
        if not decay >= 0.0:
            raise ValueError(f"decay must be >= 0, not {decay}")
        self._rank = rank
        self._step = step
        self._decay = decay
        self._chance = np.random.default_rng(seed)
        self._users: dict[Hashable, Entity] = {}
        self._items: dict[Hashable, Entity] = {}
        self._labels = 0.5
        self._count = 1

    def predict_one(self, x: tuple[Hashable, Hashable]) -> float:
        """Return the score of a (user, item); of who is not known yet, nothing is added."""
        user, item = self._users.get(x[0]), self._items.get(x[1])
        estimate = self._labels / self._count + sum(
            entity.bias for entity in (user, item) if entity is not None
        )
        if user is not None and item is not None:
            estimate += float(user.factors @ item.factors)
        return estimate - 0.5

    def learn_one(self, x: tuple[Hashable, Hashable], y: float) -> None:
        """Take a step for the label ``y``, -1 or +1, of a (user, item)."""
        user, item = self._entity(self._users, x[0]), self._entity(self._items, x[1])
        slope = self.predict_one(x) - y / 2.0
        gradient = slope * item.factors + self._decay * user.factors
        item.factors -= self._step * (slope * user.factors + self._decay * item.factors)
        user.factors -= self._step * gradient
        for entity in (user, item):
            entity.bias -= self._step * (slope + self._decay * entity.bias)
        self._labels += float(y > 0)
        self._count += 1

    def _entity(self, entities: dict[Hashable, Entity], name: Hashable) -> Entity:
        if name not in entities:
            entities[name] = Entity(START * self._chance.standard_normal(self._rank))
        return entities[name]
