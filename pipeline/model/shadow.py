"""A challenger: a learner that sees the champion's events in the same order, and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks import Forks, ForksSettings, LossName
from forks.rivals import Standardised
from pipeline.features.binary import TARGET
from pipeline.features.target import Target
from pipeline.model.rival import RivalSettings

ChallengerSettings: TypeAlias = ForksSettings | RivalSettings
"""The settings of a challenger's learner."""
Floats: TypeAlias = NDArray[np.float64]
NON_FINITE_SCORE: Final = 0.0
"""The score in place of one that is not finite, which a record cannot hold: large steps may end there."""


class ShadowLearner:
    """A challenger's learner, with the methods that the model calls for each event.

    FORKS is given the whole context vector, as a champion with its settings would be. A rival is given the
    features.

    Parameters
    ----------
    settings
        The settings of its learner.
    static_columns
        Columns of the context vector before the features.
    target
        The rules that say what it is taught.
    """

    def __init__(self, settings: ChallengerSettings, static_columns: int, target: Target = TARGET) -> None:
        self.settings = settings
        self._target = target
        self.learner: Forks | Standardised
        if isinstance(settings, ForksSettings):
            self.learner, self._first_column = Forks(settings), 0
        else:
            self.learner, self._first_column = settings.build(), static_columns

    @property
    def loss(self) -> LossName:
        """The loss that it minimises."""
        return self.settings.loss

    def predict_one(self, x: Floats) -> float:
        """Return its score of a context vector, shape (dimension,)."""
        score = self.learner.predict_one(x[self._first_column :])
        return score if isfinite(score) else NON_FINITE_SCORE

    def learn_one(self, x: Floats, label: float, weight: float = 1.0) -> None:
        """Learn the value of a context vector's label."""
        self.learner.learn_one(x[self._first_column :], self._target.taught(self.loss, label), weight)

    def replace_one(self, x: Floats, former: float, label: float) -> None:
        """Replace the value of a label that was learned; a rival learns the new one beside it."""
        if isinstance(self.learner, Forks):
            taught = (self._target.taught(self.loss, each) for each in (former, label))
            self.learner.replace_one(x[self._first_column :], *taught)
        else:
            self.learn_one(x, label)

    def learn_many(self, X: Floats, labels: Floats, weights: Floats | None = None) -> None:
        """Learn the labels of context vectors, shape (n, dimension), one after the other."""
        y = self._target.taught_many(self.loss, labels)
        self.learner.learn_many(X[:, self._first_column :], y, weights)

    def run(
        self, X: Floats, labels: Floats, order: NDArray[np.int64], weights: Floats | None = None
    ) -> Floats:
        """Predict and learn in a given order: see `forks.Forks.run`.

        Returns
        -------
        ndarray
            The scores, shape (n,); any number in rows that `order` does not predict.
        """
        y = self._target.taught_many(self.loss, labels)
        scores = self.learner.run(X[:, self._first_column :], y, order, weights)
        return np.where(np.isfinite(scores), scores, NON_FINITE_SCORE)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from the state of a learner with the same settings.

        Raises
        ------
        ValueError
            The state is not one of such a learner.
        """
        if isinstance(self.settings, ForksSettings):
            self.learner = Forks.from_state(self.settings, dict(state))
        else:
            self.learner = self.settings.build().with_state(dict(state))
