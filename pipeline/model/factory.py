"""Make models from the configuration, and name the settings that outputs depend on."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import numpy as np

from forks import ForksSettings
from pipeline.config.settings import Config, Learner
from pipeline.features.feature_set import FeatureSet
from pipeline.features.tables import Tables
from pipeline.features.target import Target
from pipeline.features.targets import target_of
from pipeline.model.challengers import resolve_challengers
from pipeline.model.columns import InteractionColumns
from pipeline.model.contexts import ContextLayout
from pipeline.model.cost import check_cost
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.model.settings_text import (
    challengers_from,
    challengers_text,
    corrections_text,
    features_text,
    kind_from,
    kind_text,
    labels_text,
    learner_from,
    learner_text,
    names_text,
    outputs_text,
    sparse_text,
    tables_text,
    target_from,
    target_text,
)
from pipeline.model.shadow import ChallengerSettings
from pipeline.model.warm_up import warm_up


class ModelFactory:
    """Makes models from the configuration, reading the tables once.

    Parameters
    ----------
    config
        The whole configuration.

    Attributes
    ----------
    learner
        The learner's settings.
    challengers
        The challengers' settings by name, in the order of their names.
    features
        Which features there are.
    target
        The rules that say what labels mean.

    Raises
    ------
    ConfigError
        A setting is refused.
    DataError
        A table cannot be read.
    """

    def __init__(self, config: Config) -> None:
        features = config.features
        self._config = config
        self._tables = Tables(features.users, features.tags, features.daily, same_day=features.same_day)
        self.features = FeatureSet.of(config.stream, features.kind)
        self.target = target_of(config.stream.target)
        self.learner = self._learner(config.learner)
        self.challengers = resolve_challengers(
            config.challengers,
            self._tables.columns,
            self.features,
            losses=self.target.losses,
            weighted=config.stream.labels.weighted,
        )

    def with_learner(self, learner: Learner) -> ModelFactory:
        """Return a factory with another learner and the same tables.

        Raises
        ------
        ConfigError
            A setting is refused. The message names it and what is accepted.
        """
        return self._with(self._learner(learner), self.challengers, self.features, self.target)

    def _learner(self, learner: Learner) -> ForksSettings:
        columns, losses = self._tables.columns, self.target.losses
        settings = learner_settings(learner, columns, features=self.features, losses=losses)
        check_cost("learner", settings)
        return settings

    @property
    def learners(self) -> tuple[ForksSettings, ...]:
        """The settings of the learner, and of the challengers that are FORKS."""
        others = (each for each in self.challengers.values() if isinstance(each, ForksSettings))
        return (self.learner, *others)

    def with_saved_settings(self, settings: Mapping[str, str]) -> ModelFactory:
        """Return a factory with learner, challengers, kind of features and target of a record's settings.

        Raises
        ------
        StateError
            The settings are of another version of a learner.
        """
        features = FeatureSet.of(self._config.stream, kind_from(settings))
        columns = ContextLayout.of(self._tables.columns, features).own_columns
        return self._with(
            learner_from(settings), challengers_from(settings, columns), features, target_from(settings)
        )

    def _with(
        self,
        learner: ForksSettings,
        challengers: Mapping[str, ChallengerSettings],
        features: FeatureSet,
        target: Target,
    ) -> ModelFactory:
        other = copy(self)
        other.learner, other.challengers = learner, dict(challengers)
        other.features, other.target = features, target
        return other

    def new_model(self) -> Model:
        """Return a model that has learned nothing."""
        return Model(
            self.learner,
            self._tables,
            self._config.features.max_entities,
            self.challengers,
            features=self.features,
            target=self.target,
            weighted=self._config.stream.labels.weighted,
            max_categories=self._config.features.max_categories,
        )

    def warm_up(self) -> None:
        """Compile what the models call. This is quick where it was done before."""
        warm_up(self.learner)
        interaction = InteractionColumns(
            tuple([0] for _ in range(self.features.entities)), np.zeros(1, dtype=np.int64)
        )
        self.new_model().run(np.arange(1), interaction, np.empty((0, len(self.features))), np.zeros(1))
        for challenger in self.challengers.values():
            if isinstance(challenger, ForksSettings):
                warm_up(challenger)
            else:
                challenger.warm_up()

    def settings(self, partitions: int) -> dict[str, str]:
        """Return the settings that outputs depend on, as state records keep them.

        Parameters
        ----------
        partitions
            The number of partitions of the topics.
        """
        return {
            "partitions": str(partitions),
            "tables": self._tables.digest,
            "features.max_entities": str(self._config.features.max_entities),
            "join.on_missing": self.target.on_missing(self._config.join.on_missing),
            **sparse_text(self._config, has_part=self.features.layout.sparse is not None),
            **corrections_text(self._config.join.corrections),
            **kind_text(self.features.kind),
            **names_text(self._config.stream),
            **outputs_text(self._config.stream),
            **features_text(self._config.stream),
            **tables_text(self._config.stream),
            **target_text(self.target),
            **labels_text(self._config.labels),
            **learner_text(self.learner),
            **challengers_text(self.challengers),
        }
