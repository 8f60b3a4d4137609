"""A learner beside the champion: it sees the same events in the same order, and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks import Forks, ForksSettings, LossName
from forks.rivals import Standardised
from pipeline.features.target import target, targets
from pipeline.model.rival import RivalSettings

Contender: TypeAlias = ForksSettings | RivalSettings
"""What a learner is made of."""
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
NOTHING: Final = 0.0
"""In place of a score that is no finite number, which a record cannot hold: steps too long may end so."""


class Shadow:
    """A challenger, with the methods that the model calls at each event.

    FORKS is given the whole context vector, as a champion of its settings would be, so that it knows what
    that champion would know; a rival is given the running block.

    Parameters
    ----------
    contender
        What it is made of.
    static_columns
        Of the context vector, before the running block.
    """

    def __init__(self, contender: Contender, static_columns: int) -> None:
        self.contender = contender
        self.learner: Forks | Standardised
        if isinstance(contender, ForksSettings):
            self.learner, self._first = Forks(contender), 0
        else:
            self.learner, self._first = contender.make(), static_columns

    @property
    def loss(self) -> LossName:
        """What it learns by."""
        return self.contender.loss

    def score(self, x: Floats) -> float:
        """What it says of a context vector."""
        score = self.learner.predict_one(x[self._first :])
        return score if isfinite(score) else NOTHING

    def learn(self, x: Floats, watched: bool, watch_ratio: float) -> None:
        """Learn a context vector's label."""
        self.learner.learn_one(x[self._first :], target(self.loss, watched, watch_ratio))

    def learn_many(self, X: Floats, watched: Flags, watch_ratios: Floats) -> None:
        """Learn the rows' labels in turn."""
        self.learner.learn_many(X[:, self._first :], targets(self.loss, watched, watch_ratios))

    def walk(self, X: Floats, watched: Flags, watch_ratios: Floats, order: NDArray[np.int64]) -> Floats:
        """Score and learn rows in any order: see `forks.Forks.walk`; rows not asked for get any number."""
        y = targets(self.loss, watched, watch_ratios)
        scores = self.learner.walk(X[:, self._first :], y, order)
        return np.where(np.isfinite(scores), scores, NOTHING)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of a learner of the same settings.

        Raises
        ------
        ValueError
            If it is none.
        """
        if isinstance(self.contender, ForksSettings):
            self.learner = Forks.from_state(self.contender, dict(state))
        else:
            self.learner = self.contender.make().restored(dict(state))
