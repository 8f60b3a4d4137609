"""A learner beside the champion: it sees the same events in the same order, and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks import Forks, ForksSettings, LossName
from forks.rivals import Standardised
from pipeline.features.target import TARGET
from pipeline.model.rival import RivalSettings

ChallengerSettings: TypeAlias = ForksSettings | RivalSettings
"""What a learner is made of."""
Floats: TypeAlias = NDArray[np.float64]
Booleans: TypeAlias = NDArray[np.bool_]
NON_FINITE_SCORE: Final = 0.0
"""In place of a score that is no finite number, which a record cannot hold: steps too long may end so."""


class ShadowLearner:
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

    def __init__(self, settings: ChallengerSettings, static_columns: int) -> None:
        self.settings = settings
        self.learner: Forks | Standardised
        if isinstance(settings, ForksSettings):
            self.learner, self._first_column = Forks(settings), 0
        else:
            self.learner, self._first_column = settings.build(), static_columns

    @property
    def loss(self) -> LossName:
        """What it learns by."""
        return self.settings.loss

    def score(self, x: Floats) -> float:
        """What it says of a context vector."""
        score = self.learner.predict_one(x[self._first_column :])
        return score if isfinite(score) else NON_FINITE_SCORE

    def learn_example(self, x: Floats, watched: bool, watch_ratio: float) -> None:
        """Learn a context vector's label."""
        self.learner.learn_one(x[self._first_column :], TARGET.value(self.loss, watched, watch_ratio))

    def learn_many(self, X: Floats, watched: Booleans, watch_ratios: Floats) -> None:
        """Learn the rows' labels in turn."""
        self.learner.learn_many(X[:, self._first_column :], TARGET.values(self.loss, watched, watch_ratios))

    def run(self, X: Floats, watched: Booleans, watch_ratios: Floats, order: NDArray[np.int64]) -> Floats:
        """Score and learn rows in any order: see `forks.Forks.run`; rows not asked for get any number."""
        y = TARGET.values(self.loss, watched, watch_ratios)
        scores = self.learner.run(X[:, self._first_column :], y, order)
        return np.where(np.isfinite(scores), scores, NON_FINITE_SCORE)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of a learner of the same settings.

        Raises
        ------
        ValueError
            If it is none.
        """
        if isinstance(self.settings, ForksSettings):
            self.learner = Forks.from_state(self.settings, dict(state))
        else:
            self.learner = self.settings.build().with_state(dict(state))
