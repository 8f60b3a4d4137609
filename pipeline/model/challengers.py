"""Resolve the configuration's challengers to the settings of their learners."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from forks import LossName
from pipeline.config.settings import FORKS, LEARNERS, Challenger, Learner
from pipeline.errors import ConfigError
from pipeline.features.binary import TARGET
from pipeline.features.feature_set import KUAIREC_FEATURES, FeatureSet
from pipeline.model.contexts import ContextLayout
from pipeline.model.learner_settings import checked_setting, learner_settings
from pipeline.model.rival import RIVALS, RivalSettings, parameter_types
from pipeline.model.shadow import ChallengerSettings
from pipeline.truncate import shown


def resolve_challengers(
    challengers: Mapping[str, Challenger],
    static_columns: int,
    features: FeatureSet = KUAIREC_FEATURES,
    losses: tuple[LossName, ...] = TARGET.losses,
    weighted: bool = False,
) -> dict[str, ChallengerSettings]:
    """Return the challengers' settings by name, in the order of their names.

    Parameters
    ----------
    challengers
        The challengers by name.
    static_columns
        Columns of the context vector before the features.
    features
        Which features there are.
    losses
        The losses that suit the target.
    weighted
        Whether labels have weights.

    Raises
    ------
    ConfigError
        A setting is unknown or its value is refused. The message names the setting and what is accepted.
    """
    return {
        name: _resolve_challenger(
            f"challengers.{name}", challenger, static_columns, features, losses, weighted=weighted
        )
        for name, challenger in sorted(challengers.items())
    }


def parse_learner(where: str, parameters: Mapping[str, Any]) -> Learner:
    """Return the preset and overrides of FORKS. The overrides are not checked yet.

    Parameters
    ----------
    where
        The section of the configuration, for errors.
    parameters
        The preset and the overrides by name.

    Raises
    ------
    ConfigError
        There is no such preset. The message names the setting and what is accepted.
    """
    try:
        return Learner.model_validate(dict(parameters))
    except ValidationError as error:
        detail = error.errors()[0]
        raise ConfigError(f"{where}.preset: {detail['msg']} (got {shown(detail['input'])})") from error


def _resolve_challenger(
    where: str,
    challenger: Challenger,
    static_columns: int,
    features: FeatureSet,
    losses: tuple[LossName, ...],
    *,
    weighted: bool,
) -> ChallengerSettings:
    kind, parameters = challenger.learner, challenger.parameters
    if kind == FORKS:
        own = parse_learner(where, parameters)
        return learner_settings(own, static_columns, where, features=features, losses=losses)
    if kind not in RIVALS:
        near = difflib.get_close_matches(kind, LEARNERS, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise ConfigError(
            f"{where}.learner: there is no learner {shown(kind)}{hint} Accepted here: {', '.join(LEARNERS)}"
        )
    types = parameter_types(kind)
    checked = {name: checked_setting(where, name, value, types) for name, value in parameters.items()}
    try:
        settings = RivalSettings.of(kind, checked, ContextLayout.of(static_columns, features).own_columns)
    except ValueError as error:
        raise ConfigError(f"{where}.{error}") from error
    if settings.loss not in losses:
        raise ConfigError(
            f"{where}.learner: {kind} minimises {settings.loss} loss, and this target is learned with the "
            f"loss {losses[0]}"
        )
    if weighted and (reason := RIVALS[kind].no_weights) is not None:
        raise ConfigError(
            f"{where}.learner is {kind}, which does not go with labels' weights: {reason}. Take another "
            "learner"
        )
    return settings
