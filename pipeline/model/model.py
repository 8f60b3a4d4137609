"""The model of one partition: running statistics and learners, moved by the partition's outcomes alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress, pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from forks import LOSSES, Explanation, Forks, ForksSettings, LastColumns, probability
from forks.learning.event_loop import loss_values
from forks.losses import loss_value
from pipeline.config.stream_features import RunningFeature
from pipeline.features.binary import TARGET
from pipeline.features.feature_set import KUAIREC_FEATURES, FeatureSet
from pipeline.features.regression import RegressionTarget
from pipeline.features.statistics import RunningStatistics
from pipeline.features.tables import Tables
from pipeline.features.target import Target
from pipeline.model.columns import (
    NO_ROWS,
    FormerLabels,
    InteractionColumns,
    InteractionLike,
    ModelOutput,
    ModelOutputs,
    feature_rows,
    label_weights,
)
from pipeline.model.contexts import ContextLayout
from pipeline.model.label_policy import no_policy
from pipeline.model.model_run import Labels, ModelRun
from pipeline.model.shadow import ChallengerSettings, ShadowLearner
from pipeline.model.sparse import DEFAULT_MAX_CATEGORIES, sparse_part
from pipeline.records.outcome_decoder import DecodedOutcomes
from pipeline.records.outputs import Outcome, Share


class Model:
    """Predicts from ids, time and features of the message, and changes only by what it learns of outcomes.

    The context vector is the concatenation of the tables' blocks and the features, see
    `pipeline.model.contexts.ContextLayout`. The tables are looked up only for a learner that uses them.

    Parameters
    ----------
    settings
        The learner's settings; their dimension is that of the context vector.
    tables
        The static blocks.
    max_entities
        The number of entities in each table of the running statistics.
    challengers
        The settings of the challengers, which learn from the same events, by name in the order of names.
    features
        Which features there are.
    target
        The rules that say what labels mean.
    weighted
        Whether labels have weights.
    max_categories
        The number of categories without columns, pairs of them and bins of numbers with weights.

    Attributes
    ----------
    features
        Which features there are.
    weighted
        Whether labels have weights.
    learner
        The champion.
    sparse
        The champion's sparse part; None without categories that have no columns.
    challengers
        The challengers by name.
    statistics
        The running statistics.
    outcomes_learned
        Outcomes learned so far: the model's version.
    mean_columns
        Places of the features that are running means of the first two entities.
    """

    def __init__(
        self,
        settings: ForksSettings,
        tables: Tables,
        max_entities: int,
        challengers: Mapping[str, ChallengerSettings] = MappingProxyType({}),
        *,
        features: FeatureSet = KUAIREC_FEATURES,
        target: Target = TARGET,
        weighted: bool = False,
        max_categories: int = DEFAULT_MAX_CATEGORIES,
    ) -> None:
        self.tables = tables
        self.weighted = weighted
        self.target = target
        self.features = features
        self.learner = Forks(settings)
        self.challengers = {
            name: ShadowLearner(each, tables.columns, target) for name, each in challengers.items()
        }
        tags = tables.tags.lists if tables.tags else None
        self.statistics = RunningStatistics(max_entities, tags, features, target)
        self.outcomes_learned = 0
        self.sparse = sparse_part(features, settings.loss, max_categories)
        mean: RunningFeature = "value_mean" if isinstance(target, RegressionTarget) else "label_mean"
        self.mean_columns = features.places(mean)[:2]
        self.layout = ContextLayout.of(tables.columns, features)
        self._uses_tables = any(
            min(each.linear_columns[0], each.kernel_columns[0]) < tables.columns
            for each in (settings, *challengers.values())
            if isinstance(each, ForksSettings)
        )

    def predict(self, interaction: InteractionLike, values: Sequence[float] = ()) -> ModelOutput:
        """Predict whether an interaction's label will be positive.

        Parameters
        ----------
        interaction
            Its ids and its time.
        values
            The features that its message has by itself.
        """
        running = self.statistics.features(interaction.ids, interaction.timestamp, values)
        features, score = self._predict_sparse([*running, *values], interaction)
        logistic = self.learner.settings.loss == "logistic"
        p = probability(score) if logistic else None
        challengers = self._challenger_scores(interaction, features)
        return ModelOutput(features, score, p, self.target.prediction(score), challengers)

    def _predict_sparse(
        self, features: list[float], interaction: InteractionLike
    ) -> tuple[list[float], float]:
        """Return the features with the scores of the sparse part, if there is one, and the score."""
        if self.sparse is None:
            return features, self.predict_score(interaction, features)
        X, order, none = np.array([features]), np.zeros(1, dtype=np.int64), np.zeros(1)
        self.sparse.run(X, order, none)
        found = np.array([self.learner.predict_one(self.context(interaction, X[0]))])
        self.sparse.mix(X, order, none, found)
        return X[0].tolist(), float(found[0])

    def predict_score(self, interaction: InteractionLike, features: Sequence[float]) -> float:
        """Return the score of an interaction with these features, as predictions carry them."""
        score = self.learner.predict_one(self.context(interaction, features))
        if self.sparse is None:
            return score
        found = np.array([score])
        self.sparse.mix(np.array([features]), np.zeros(1, dtype=np.int64), np.zeros(1), found)
        return float(found[0])

    def explain(self, interaction: InteractionLike, features: Sequence[float]) -> Explanation:
        """Return the terms of `predict_score`, by column of the context vector."""
        return self.learner.explain_one(self.context(interaction, features))

    def variances(
        self, interactions: Sequence[InteractionLike], features: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the variances of the learner's scores: see `forks.Forks.variances`.

        Parameters
        ----------
        interactions
            The n interactions.
        features
            Their features, shape (n, features).

        Returns
        -------
        ndarray
            Shape (n,).
        """
        columns = InteractionColumns.of(interactions, self.features.entities)
        return self.learner.variances(self.events(columns, features))

    def _challenger_scores(
        self, interaction: InteractionLike, features: list[float]
    ) -> dict[str, float] | None:
        """Return the challengers' scores by name; None where there are none."""
        if not self.challengers:
            return None
        x = self.context(interaction, features)
        return {name: shadow.predict_one(x) for name, shadow in self.challengers.items()}

    def predict_many(
        self, interactions: Sequence[InteractionLike], values: NDArray[np.float64] | None = None
    ) -> ModelOutputs:
        """Predict interactions that are not part of the stream, with the same bits as `predict`.

        Nothing is learned, and no entity is remembered: `pipeline.model.snapshot.pack` returns the same bytes
        before and after.

        Parameters
        ----------
        interactions
            The n interactions.
        values
            The features that their messages have by themselves, shape (n, features); None where messages have
            none.
        """
        n = len(interactions)
        columns = InteractionColumns.of(interactions, self.features.entities)
        return self.run(np.arange(n), columns, np.empty((0, len(self.features))), np.zeros(n), values)

    def run(
        self,
        order: NDArray[np.int64],
        interactions: InteractionColumns,
        known_features: NDArray[np.float64],
        labels: NDArray[np.float64],
        values: NDArray[np.float64] | None = None,
        *,
        weights: NDArray[np.float64] | None = None,
        former: FormerLabels | None = None,
        again: NDArray[np.int64] = NO_ROWS,
    ) -> ModelOutputs:
        """Predict and learn in a given order, with the same bits as one by one.

        Parameters
        ----------
        order
            Steps, shape (steps,): i predicts interaction i, n + i learns its label, 2 n + i replaces it.
        interactions
            The n interactions. Those predicted before are the first of them, and those that are there once
            more, for another label, the last.
        known_features
            The features of those predicted before, shape (known, features).
        labels
            Values of the labels, shape (n,); only those that are learned are read.
        values
            The features that the messages of the others have by themselves, shape (n - known, features); None
            where messages have none.
        weights
            Weights of the labels, shape (n,), which only learners look at; None where all are 1.
        former
            The labels that are replaced; None where none is.
        again
            The rows that are there once more, in the order of these.

        Returns
        -------
        ModelOutputs
            One row for each of the n - known - len(again) interactions that were not predicted before.
        """
        run = self.begin(
            interactions, known_features, labels, values, weights=weights, former=former, again=again
        )
        return run.run(order, Labels.all(len(order)), no_policy(len(labels)))

    def begin(
        self,
        interactions: InteractionColumns,
        known_features: NDArray[np.float64],
        labels: NDArray[np.float64],
        values: NDArray[np.float64] | None = None,
        *,
        weights: NDArray[np.float64] | None = None,
        former: FormerLabels | None = None,
        again: NDArray[np.int64] = NO_ROWS,
    ) -> ModelRun:
        """Begin what `run` does, for a caller whose labels are learned only if a policy says so.

        The parameters are those of `run`.
        """
        return ModelRun(self, interactions, known_features, labels, values, weights, former, again)

    def losses(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> list[float]:
        """Return `loss` of each score and label, shapes (n,)."""
        loss = self.learner.settings.loss
        y = self.target.taught_many(loss, labels)
        values: list[float] = loss_values(scores, y, LOSSES[loss]).tolist()
        return values

    def loss(self, score: float, label: float) -> float:
        """Return the learner's loss at a score, against what `target` has it taught of a label's value."""
        loss = self.learner.settings.loss
        return float(loss_value(LOSSES[loss], score, self.target.taught(loss, label)))

    def learn_one(self, outcome: Outcome) -> None:
        """Learn from the next outcome: first what it holds of other partitions, then its own label.

        The features are those of the outcome, as they were when the prediction was made. An outcome
        without a label changes nothing else but the count.

        Raises
        ------
        ValueError
            The outcome is not the next one by its sequence. Nothing has changed.
        """
        if outcome.sequence != self.outcomes_learned:
            raise ValueError(f"outcome {outcome.sequence} is not the next one, {self.outcomes_learned}")
        self.outcomes_learned += 1
        self.merge_shared(outcome.shared or ())
        if outcome.label is not None:
            self._learn_label(outcome)

    def learn_many(self, outcomes: Sequence[Outcome]) -> None:
        """Learn from the next outcomes: see `learn_columns`."""
        features = feature_rows(outcomes, len(self.features))
        self.learn_columns(DecodedOutcomes.of(outcomes, features, self.features.entities))

    def learn_columns(self, outcomes: DecodedOutcomes) -> None:
        """Learn from the next outcomes, with the same bits as by `learn_one`, at a tenth of the cost.

        Raises
        ------
        ValueError
            They are not the next ones, in order. Nothing has changed.
        """
        expected = range(self.outcomes_learned, self.outcomes_learned + len(outcomes))
        if outcomes.sequences != list(expected):
            pairs = zip(outcomes.sequences, expected, strict=True)
            found, due = next(pair for pair in pairs if pair[0] != pair[1])
            raise ValueError(f"outcome {found} is not the next one, {due}")
        begins = {row for row, each in outcomes.records.items() if each.shared}
        for begin, end in pairwise(sorted({0, *begins, len(outcomes)})):
            self._learn_chunk(outcomes[begin:end])

    def merge_shared(self, shares: Sequence[Share]) -> None:
        """Learn what other partitions share of their outcomes: counts by entity and training examples."""
        if not shares:
            return
        self.statistics.merge_shared(shares)
        examples = [example for share in shares for example in share.examples]
        labels = np.array([example.watch_ratio for example in examples], dtype=np.float64)
        columns = InteractionColumns.of(examples, self.features.entities)
        features = feature_rows(examples, len(self.features))
        n = len(labels)
        self._run_learners(np.arange(n, 2 * n), columns, features, labels, label_weights(examples), None)

    def _learn_chunk(self, outcomes: DecodedOutcomes) -> None:
        """Learn from outcomes of which only the first may hold shares of other partitions."""
        first = outcomes.records.get(0)
        self.outcomes_learned += len(outcomes)
        if first is not None:
            self.merge_shared(first.shared or ())
        ids, timestamps, kept = outcomes.ids, outcomes.timestamps, outcomes.learned
        features, labels, weights = outcomes.features, outcomes.labels, outcomes.weights
        if not kept.all():
            ids = tuple([*compress(column, kept.tolist())] for column in ids)
            timestamps, features, labels = timestamps[kept], features[kept], labels[kept]
            weights = None if weights is None else weights[kept]
        order, former = _learning_steps(outcomes)
        interactions = InteractionColumns(ids, timestamps)
        self._run_learners(order, interactions, features, labels, weights, former)
        self.statistics.run(
            order,
            ids,
            self.target.are_positive(labels),
            labels,
            timestamps,
            features[:, self.features.running :],
            None if former is None else former.values,
            self.features.expected_signals(features),
        )

    def _learn_label(self, outcome: Outcome) -> None:
        if outcome.replaces:
            self._replace(outcome, outcome.features)
        else:
            self.learn_example(outcome, outcome.features, outcome.watch_ratio or 0.0, outcome.weight)

    def _replace(self, outcome: Outcome, features: list[float]) -> None:
        assert outcome.former is not None
        before = 1.0 if outcome.former_weight is None else outcome.former_weight
        value, weight = outcome.watch_ratio or 0.0, outcome.weight
        self.replace_example(outcome, features, outcome.former, value, former_weight=before, weight=weight)

    def replace_example(
        self,
        interaction: InteractionLike,
        features: list[float],
        former: float,
        label: float,
        *,
        former_weight: float = 1.0,
        weight: float = 1.0,
    ) -> None:
        """Learn the value of a label in place of the former one."""
        x, loss = self.context(interaction, features), self.learner.settings.loss
        weights = {"former_weight": former_weight, "weight": weight}
        before, y = self.target.taught(loss, former), self.target.taught(loss, label)
        self.learner.replace_one(x, before, y, **weights)
        if self.sparse is not None:
            step, known = np.full(1, 2), np.array([former_weight])
            self.sparse.learn(
                np.array([features]), step, np.array([y]), np.array([weight]), np.array([before]), known
            )
        for shadow in self.challengers.values():
            shadow.replace_one(x, former, label, **weights)
        values = features[self.features.running :]
        self.statistics.replace(interaction.ids, former, label, interaction.timestamp, values)

    def learn_example(
        self, interaction: InteractionLike, features: list[float], label: float, weight: float = 1.0
    ) -> None:
        """Learn the value of one label, with the features that its prediction was made from.

        `pipeline.features.target.Target.taught` is what each learner is taught. The running statistics count
        events, whatever their labels weigh.
        """
        x, y = self.context(interaction, features), self.target.taught(self.learner.settings.loss, label)
        self.learner.learn_one(x, y, weight)
        if self.sparse is not None:
            step = np.ones(1, dtype=np.int64)
            self.sparse.learn(np.array([features]), step, np.array([y]), np.array([weight]))
        for shadow in self.challengers.values():
            shadow.learn_one(x, label, weight)
        values, positive = features[self.features.running :], self.target.is_positive(label)
        signals = self.features.expected_signals(np.array([features], dtype=np.float64))
        expected = 0.0 if signals is None else float(signals[0])
        self.statistics.update(
            interaction.ids, positive, label, interaction.timestamp, values, expected=expected
        )

    def _run_learners(  # noqa: PLR0917 - those of `run`
        self,
        order: NDArray[np.int64],
        interactions: InteractionColumns,
        features: NDArray[np.float64],
        labels: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        former: FormerLabels | None,
    ) -> None:
        """Let all learners learn."""
        loss, taken_back, former_weights = self.learner.settings.loss, None, None
        if former is not None:
            taken_back, former_weights = self.target.taught_many(loss, former.values), former.weights
        y, X = self.target.taught_many(loss, labels), self.events(interactions, features)
        self.learner.run(X, y, order, weights, former=taken_back, former_weights=former_weights)
        if self.sparse is not None:
            self.sparse.learn(features, order, y, weights, taken_back, former_weights)
        for shadow in self.challengers.values():
            assert not isinstance(X, LastColumns), "challengers learn from whole vectors"
            shadow.run(X, labels, order, weights, former)

    def events(
        self, interactions: InteractionColumns, features: NDArray[np.float64]
    ) -> NDArray[np.float64] | LastColumns:
        """Return what the learners see of interactions: context vectors, or the end of these.

        Without categories, a context vector ends with the features.
        """
        if self.challengers or self._uses_tables or not self.layout.whole:
            return self._contexts(interactions, features)
        return LastColumns(features)

    def _contexts(
        self, interactions: InteractionColumns, features: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the context vectors of interactions, shape (n, dimension)."""
        X = np.zeros((len(features), self.layout.dimension))
        if self._uses_tables:
            users = interactions.ids[0]
            videos = interactions.ids[1] if len(interactions.ids) > 1 else users  # there is no table by these
            for x, user, video, timestamp in zip(
                X, users, videos, interactions.timestamps.tolist(), strict=True
            ):
                self.tables.fill(x, user, video, timestamp)
        self.layout.fill(X, features)
        return X

    def context(self, interaction: InteractionLike, features: Sequence[float]) -> NDArray[np.float64]:
        """Return the context vector of an interaction."""
        columns = InteractionColumns.of([interaction], self.features.entities)
        [x] = self._contexts(columns, np.array([features]))
        context: NDArray[np.float64] = x
        return context


def _learning_steps(outcomes: DecodedOutcomes) -> tuple[NDArray[np.int64], FormerLabels | None]:
    """Return the steps of `Model.run` that learn those outcomes that are learned, and what they replace."""
    learned = np.flatnonzero(outcomes.learned)
    n = len(learned)
    order = np.arange(n, 2 * n)
    replaced = {row: each for row, each in outcomes.records.items() if each.replaces}
    if not replaced:
        return order, None
    places, values, weights = np.searchsorted(learned, [*replaced]), np.zeros(n), np.ones(n)
    order[places] += n
    values[places] = [each.former for each in replaced.values()]
    weights[places] = [
        1.0 if each.former_weight is None else each.former_weight for each in replaced.values()
    ]
    return order, FormerLabels(values, weights)
