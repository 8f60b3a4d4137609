"""One model for each epoch of settings of a partition."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from pipeline.model.model import Model
from pipeline.records.outputs import Outcome
from pipeline.task.state import SettingsEpoch


class SettingsEpochs:
    """The models of all epochs of settings, which learn the same outcomes.

    When an epoch began, its model had learned all outcomes so far under the settings of the epoch. So
    each model learns from the first outcome to the last one of its epoch.

    Parameters
    ----------
    earlier
        Epochs that have ended, in their order.
    models
        New models under the settings of these epochs, in the same order.
    current
        Model under the current settings, new or restored from a snapshot. After a snapshot, predictions
        of earlier epochs cannot be derived.

    Attributes
    ----------
    current
        Model under the current settings.
    """

    def __init__(self, earlier: Sequence[SettingsEpoch], models: Sequence[Model], current: Model) -> None:
        self.current = current
        self._predictions = [epoch.predictions for epoch in earlier]
        self._outcomes = [epoch.outcomes for epoch in earlier]
        self._models = [*models, current]

    def model_of_prediction(self, sequence: int) -> Model:
        """Return the model that made the prediction of this sequence."""
        return self._models[bisect_right(self._predictions, sequence)]

    def model_of_outcome(self, sequence: int) -> Model:
        """Return the model that learned the outcome of this sequence when it was written."""
        return self._models[bisect_right(self._outcomes, sequence)]

    @property
    def count(self) -> int:
        """Number of epochs, the current one included."""
        return len(self._models)

    def model_of_epoch(self, number: int) -> Model | None:
        """Return the model of an epoch, from 0; None if there is none."""
        return self._models[number] if number < len(self._models) else None

    def learn_one(self, outcome: Outcome) -> None:
        """Let every model learn an outcome whose epoch had not ended before it."""
        for model in self._models[bisect_right(self._outcomes, outcome.sequence) :]:
            if model.outcomes_learned == outcome.sequence:
                model.learn_one(outcome)
