"""A model for each era of a partition: what its predictions and its losses came of."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from pipeline.model.model import Model
from pipeline.records.outputs import Outcome
from pipeline.task.state import SettingsEpoch


class SettingsEpochs:
    """The models of all eras, folded together.

    When an era began, its model was the fold of all outcomes so far under its settings, as if these had
    always been in force. So each folds from the first outcome to the last of its era.

    Parameters
    ----------
    earlier
        The eras that have ended.
    models
        New ones under their settings, in the same order.
    present
        The model under the settings in force, new or as a snapshot has it. With a snapshot's, what was
        predicted in the earlier eras cannot be derived.

    Attributes
    ----------
    present
        The same.
    """

    def __init__(self, earlier: Sequence[SettingsEpoch], models: Sequence[Model], current: Model) -> None:
        self.current = current
        self._predictions = [epoch.predictions for epoch in earlier]
        self._outcomes = [epoch.outcomes for epoch in earlier]
        self._models = [*models, current]

    def model_of_prediction(self, sequence: int) -> Model:
        """The model that a prediction was made by."""
        return self._models[bisect_right(self._predictions, sequence)]

    def model_of_outcome(self, sequence: int) -> Model:
        """The model that learned from an outcome when it was written."""
        return self._models[bisect_right(self._outcomes, sequence)]

    def learn_one(self, outcome: Outcome) -> None:
        """Let each model learn whose era has not ended before."""
        for model in self._models[bisect_right(self._outcomes, outcome.sequence) :]:
            if model.folded == outcome.sequence:
                model.learn_one(outcome)
