"""Steps of a model over interactions that are given together, one part of the steps after the other."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks import Forks
from forks.losses import probabilities
from pipeline.features.feature_set import FeatureSet
from pipeline.features.statistics import RunningStatistics
from pipeline.features.target import Target
from pipeline.model.columns import FormerLabels, InteractionColumns, ModelOutputs
from pipeline.model.shadow import ShadowLearner

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class LearningModel(Protocol):
    """What a run needs of `pipeline.model.model.Model`."""

    features: FeatureSet
    target: Target
    statistics: RunningStatistics
    learner: Forks
    challengers: dict[str, ShadowLearner]

    def run_learners(  # noqa: PLR0917 - columns
        self,
        order: Integers,
        interactions: InteractionColumns,
        features: Floats,
        labels: Floats,
        weights: Floats | None,
        former: FormerLabels | None,
    ) -> tuple[Floats, list[Floats]]: ...


class ModelRun:
    """Steps over n interactions.

    Parameters
    ----------
    model
        It changes.
    interactions, known_features, labels, values, weights, former, again
        As in `pipeline.model.model.Model.run`.
    """

    def __init__(  # noqa: PLR0917 - columns
        self,
        model: LearningModel,
        interactions: InteractionColumns,
        known_features: Floats,
        labels: Floats,
        values: Floats | None,
        weights: Floats | None,
        former: FormerLabels | None,
        again: Integers,
    ) -> None:
        self._model, self._interactions, self._again = model, interactions, again
        self._labels, self._weights, self._former = labels, weights, former
        self._known, self._running = len(known_features), model.features.running
        self._own = slice(self._known, len(labels) - len(again))
        self._features = np.empty((len(labels), len(model.features)))
        self._features[: self._known] = known_features
        if values is not None:
            self._features[self._own, self._running :] = values
        self._features[self._own.stop :, self._running :] = self._features[again, self._running :]
        self._statistics = model.statistics.begin(
            interactions.ids,
            model.target.are_positive(labels),
            labels,
            interactions.timestamps,
            self._features[:, self._running :],
            None if former is None else former.values,
        )

    def advance(self, order: Integers, begin: int, end: int) -> ModelOutputs:
        """Run the next steps, which predict the interactions from `begin` to `end`.

        Parameters
        ----------
        order
            The steps, shape (steps,): see `pipeline.model.model.Model.run`.
        begin, end
            The interactions that are predicted.

        Returns
        -------
        ModelOutputs
            One row for each of these interactions.
        """
        model, features = self._model, self._features
        self._statistics.run(order)
        if begin < end:
            features[begin:end, : self._running] = self._statistics.features(begin, end)
        features[self._own.stop :] = features[self._again]
        scores, others = self._run_learners(order, begin, end)
        p = (
            [None] * len(scores)
            if model.learner.settings.loss != "logistic"
            else probabilities(scores).tolist()
        )
        challenger_scores: list[dict[str, float]] | list[None] = [None] * len(scores)
        if model.challengers:
            columns = [each.tolist() for each in others]
            challenger_scores = [
                dict(zip(model.challengers, row, strict=True)) for row in zip(*columns, strict=True)
            ]
        return ModelOutputs(features[begin:end], scores.tolist(), p, challenger_scores)

    def finish(self) -> None:
        """End the run, after the last part."""
        self._statistics.finish()

    def _run_learners(self, order: Integers, begin: int, end: int) -> tuple[Floats, list[Floats]]:
        """Let the learners take the steps; return each one's scores of the predicted interactions."""
        model, labels, weights, former = self._model, self._labels, self._weights, self._former
        if (begin, end) == (self._own.start, self._own.stop):
            scores, others = model.run_learners(
                order, self._interactions, self._features, labels, weights, former
            )
            return scores[begin:end], [each[begin:end] for each in others]
        # Each step has a row of its own: there are few.
        kinds, rows = np.divmod(order, len(labels))
        if former is not None:
            values, of_former = former
            former = FormerLabels(values[rows], None if of_former is None else of_former[rows])
        scores, others = model.run_learners(
            np.arange(len(rows)) + kinds * len(rows),
            self._interactions.select(rows),
            self._features[rows],
            labels[rows],
            None if weights is None else weights[rows],
            former,
        )
        predicted = kinds == 0
        return scores[predicted], [each[predicted] for each in others]
