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
from pipeline.model.columns import FormerLabels
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

    def replace_one(
        self, x: Floats, former: float, label: float, *, former_weight: float = 1.0, weight: float = 1.0
    ) -> None:
        """Replace the value of a label that was learned; a rival learns the new one beside it."""
        if isinstance(self.learner, Forks):
            before, taught = (self._target.taught(self.loss, each) for each in (former, label))
            self.learner.replace_one(
                x[self._first_column :], before, taught, former_weight=former_weight, weight=weight
            )
        else:
            self.learn_one(x, label, weight)

    def run(
        self,
        X: Floats,
        labels: Floats,
        order: NDArray[np.int64],
        weights: Floats | None = None,
        former: FormerLabels | None = None,
    ) -> Floats:
        """Predict, learn and replace in a given order: see `forks.Forks.run` and `replace_one`.

        Returns
        -------
        ndarray
            The scores, shape (n,); any number in rows that `order` does not predict.
        """
        y = self._target.taught_many(self.loss, labels)
        columns = X[:, self._first_column :]
        if not isinstance(self.learner, Forks):
            order = np.where(order >= 2 * len(X), order - len(X), order)
            scores = self.learner.run(columns, y, order, weights)
        else:
            scores = self.learner.run(
                columns,
                y,
                order,
                weights,
                former=None if former is None else self._target.taught_many(self.loss, former.values),
                former_weights=None if former is None else former.weights,
            )
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
