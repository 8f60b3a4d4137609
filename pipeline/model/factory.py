"""What models are made of, and what of it the outputs depend on."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from forks import ForksSettings
from pipeline.config.tree import Config, Learner
from pipeline.features.tables import Tables
from pipeline.model.challengers import resolve_challengers
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.model.settings_text import (
    challengers_from,
    challengers_text,
    labels_text,
    learner_from,
    learner_text,
)
from pipeline.model.shadow import ChallengerSettings
from pipeline.model.warm_up import warm_up


class ModelFactory:
    """Makes models by the configuration, with the tables read once.

    Parameters
    ----------
    config
        The whole configuration.

    Attributes
    ----------
    learner
        The learner's settings.
    challengers
        What the challengers are made of, by name, in the order of their names.

    Raises
    ------
    ConfigError, DataError
        If a setting or a table is not as it has to be.
    """

    def __init__(self, config: Config) -> None:
        features = config.features
        self._config = config
        self._tables = Tables(features.users, features.tags, features.daily, same_day=features.same_day)
        self.learner = learner_settings(config.learner, self._tables.columns)
        self.challengers = resolve_challengers(config.challengers, self._tables.columns)

    def with_learner(self, learner: Learner) -> ModelFactory:
        """The same with another learner.

        Raises
        ------
        ConfigError
            Naming the setting and what is accepted.
        """
        return self._with(learner_settings(learner, self._tables.columns), self.challengers)

    def with_saved_settings(self, settings: Mapping[str, str]) -> ModelFactory:
        """The same with the learner and the challengers that a state record's settings name.

        Raises
        ------
        StateError
            If they are of another version of the learner.
        """
        return self._with(learner_from(settings), challengers_from(settings))

    def _with(self, learner: ForksSettings, challengers: Mapping[str, ChallengerSettings]) -> ModelFactory:
        other = copy(self)
        other.learner, other.challengers = learner, dict(challengers)
        return other

    def new_model(self) -> Model:
        """A model that has seen nothing."""
        return Model(self.learner, self._tables, self._config.features.max_entities, self.challengers)

    def warm_up(self) -> None:
        """Compile what the models call; quick where it was done before."""
        warm_up(self.learner)
        for contender in self.challengers.values():
            if isinstance(contender, ForksSettings):
                warm_up(contender)
            else:
                contender.warm_up()

    def settings(self, partitions: int) -> dict[str, str]:
        """What the outputs in topics of so many partitions depend on, as state records keep it."""
        return {
            "partitions": str(partitions),
            "tables": self._tables.digest,
            "features.max_entities": str(self._config.features.max_entities),
            "join.on_missing": self._config.join.on_missing,
            **labels_text(self._config.labels),
            **learner_text(self.learner),
            **challengers_text(self.challengers),
        }
