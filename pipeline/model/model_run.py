"""Steps of a model over interactions that are given together, prepared for the compiled loop."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks import Forks, LastColumns
from forks.losses import probabilities
from forks.sparse import SparsePart, SparseSettings
from pipeline.features.feature_set import FeatureSet
from pipeline.features.statistics import RunningStatistics
from pipeline.features.target import Target
from pipeline.model.columns import FormerLabels, InteractionColumns, ModelOutputs
from pipeline.model.contexts import ContextLayout
from pipeline.model.label_policy import PreparedPolicy
from pipeline.model.segments import AT, END, NOTHING, Kept, Planned, Rows, run_segments
from pipeline.model.shadow import ShadowLearner

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


NO_SPARSE: Final = SparsePart(SparseSettings(fields=1, capacity=8), (0,), 1).arrays
"""What stands for the arrays of the sparse part where there is none."""


class LearningModel(Protocol):
    """What a run needs of `pipeline.model.model.Model`."""

    features: FeatureSet
    target: Target
    statistics: RunningStatistics
    learner: Forks
    sparse: SparsePart | None
    challengers: dict[str, ShadowLearner]
    layout: ContextLayout

    def events(self, interactions: InteractionColumns, features: Floats) -> Floats | LastColumns: ...


class Labels(NamedTuple):
    """Which labels are learned, by the steps of a run."""

    came: NDArray[np.bool_]
    """Whether the label came, shape (steps,)."""
    replaces: Integers
    """The step whose label is replaced, if that was learned, or as `pipeline.model.segments.Planned` has it;
    shape (steps,)."""
    learned: NDArray[np.bool_]
    """Whether the step is run, as far as the policy leaves it; shape (steps,). Written."""

    @classmethod
    def all(cls, steps: int) -> Labels:
        """Learn all of them."""
        came, learned = np.ones((2, steps), dtype=np.bool_)
        return cls(came, np.full(steps, NOTHING), learned)


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
        self._own = slice(len(known_features), len(labels) - len(again))
        running = model.features.running
        self._features = features = np.zeros((len(labels), len(model.features)))
        features[: self._own.start] = known_features
        if values is not None:
            features[self._own, running:] = values
        features[self._own.stop :] = features[again]

    def run(self, order: Integers, labels: Labels, policy: PreparedPolicy) -> ModelOutputs:
        """Run the steps.

        Parameters
        ----------
        order
            The steps, shape (steps,): see `pipeline.model.model.Model.run`. If the policy looks at scores,
            interactions are predicted in their order.
        labels
            Which labels are learned.
        policy
            Decides which labels are asked for.

        Returns
        -------
        ModelOutputs
            One row for each of the interactions that are predicted.
        """
        model, features, target, own = self._model, self._features, self._model.target, self._own
        n, loss, former = len(features), model.learner.settings.loss, self._former
        origins = np.concatenate([np.arange(own.stop), self._again])
        x = model.events(self._interactions, features)
        learner = model.learner.begin(
            x,
            target.taught_many(loss, self._labels),
            order[order >= n] % n,
            self._weights,
            former=None if former is None else target.taught_many(loss, former.values),
            former_weights=None if former is None else former.weights,
        )
        statistics = model.statistics.begin(
            self._interactions.ids,
            target.are_positive(self._labels),
            self._labels,
            self._interactions.timestamps,
            features[:, model.features.running :],
            None if former is None else former.values,
            model.features.expected_signals(features),
            origins,
        )
        statistics.check_order(order)
        planned = Planned(order, origins[order % n], labels.came, labels.replaces, labels.learned)
        steps, scores = len(order), np.full(n, np.nan)
        kept = Kept(
            np.array([0, 0, 0, 0, own.start, own.start]),
            np.empty(steps, dtype=np.int64),
            np.empty(steps, dtype=np.int64),
            np.empty(steps, dtype=np.int64),
            np.empty(steps),
            np.empty(steps if len(learner.importances) else 0),
            np.empty((steps if len(learner.formers) else 0, 2)),
            statistics.evicted(steps),
            np.empty(steps),
        )
        rows = Rows(
            features,
            learner.rows,
            model.features.running - model.layout.hidden_running,
            0 if isinstance(x, LastColumns) else model.layout.first_running,
            learner.y,
            learner.importances,
            learner.formers,
            scores,
            model.sparse is not None,
        )
        sparse = NO_SPARSE if model.sparse is None else model.sparse.arrays
        parts = tuple(planned), tuple(policy), tuple(kept), tuple(rows)
        while run_segments(*parts, statistics.arrays, sparse, learner.arrays, learner.counts):
            if learner.changes_map():
                at = kept.places[AT]
                kept.found[at] = learner.change_map(int(kept.of_learner[at]))
                kept.places[AT] += 1
        learner.finish()
        statistics.finish(kept.evicted)
        return self._outputs(scores[own], kept.order[: kept.places[END]], x)

    def _outputs(self, scores: Floats, order: Integers, x: Floats | LastColumns) -> ModelOutputs:
        """Return what was predicted, once the challengers have run the same steps."""
        model = self._model
        p = (
            [None] * len(scores)
            if model.learner.settings.loss != "logistic"
            else probabilities(scores).tolist()
        )
        challenger_scores: list[dict[str, float]] | list[None] = [None] * len(scores)
        if model.challengers:
            assert not isinstance(x, LastColumns), "challengers learn from whole vectors"
            found = [
                shadow.run(x, self._labels, order, self._weights, self._former)[self._own].tolist()
                for shadow in model.challengers.values()
            ]
            challenger_scores = [
                dict(zip(model.challengers, row, strict=True)) for row in zip(*found, strict=True)
            ]
        return ModelOutputs(self._features[self._own], scores.tolist(), p, challenger_scores)
