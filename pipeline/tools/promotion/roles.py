"""Swap champion and challenger in a configuration and in a model."""

from __future__ import annotations

from pydantic import ValidationError

from forks import Forks, ForksSettings
from pipeline.config.settings import CHALLENGER_NAME, CHAMPION, FORKS, Challenger, Config
from pipeline.errors import ConfigError
from pipeline.model.challengers import parse_learner
from pipeline.model.factory import ModelFactory
from pipeline.model.model import Model
from pipeline.model.settings_text import as_toml


def swapped(config: Config, name: str, former: str) -> Config:
    """Return a configuration in which the champion and a challenger have swapped roles.

    Parameters
    ----------
    config
        Whole configuration.
    name
        Name of the challenger.
    former
        Name of the present champion as a challenger.

    Returns
    -------
    Config
        Configuration with the challenger as `learner`.

    Raises
    ------
    ConfigError
        If there is no such challenger, it is a rival, or `former` cannot be a challenger's name.
    """
    challengers = dict(config.challengers)
    if name not in challengers:
        known = ", ".join(challengers) or "none. Configure one in a table [challengers.NAME]"
        raise ConfigError(f"there is no challenger {name!r}. Configured are: {known}")
    chosen = challengers.pop(name)
    if chosen.learner != FORKS:
        raise ConfigError(
            f"challengers.{name} is a rival ({chosen.learner}), which cannot be promoted: only a challenger "
            f'with learner = "{FORKS}" can become champion'
        )
    if former in challengers or former == CHAMPION:
        raise ConfigError(
            f"--former {former}: the name is in use. Choose another name for the present champion"
        )
    try:
        CHALLENGER_NAME.validate_python(former)
    except ValidationError as error:
        raise ConfigError(f"--former {former}: {error.errors()[0]['msg']}") from error
    parameters = {"learner": FORKS, "preset": config.learner.preset, **config.learner.overrides}
    challengers[former] = Challenger.model_validate(parameters)
    learner = parse_learner(f"challengers.{name}", chosen.parameters)
    return config.model_copy(update={"learner": learner, "challengers": challengers})


def swap(model: Model, empty: Model, name: str, former: str) -> Model:
    """Move the learners of a model into a model in which champion and challenger have swapped roles.

    No bit of a learner changes: its state does not depend on its role.

    Parameters
    ----------
    model
        Model before the swap; it is of no use afterwards.
    empty
        New model of the swapped settings.
    name
        Name of the challenger that becomes champion.
    former
        Name of the former champion as a challenger.

    Returns
    -------
    Model
        The model `empty` with the learners and statistics of `model`.
    """
    champion = model.challengers[name].learner
    assert isinstance(champion, Forks), "a rival is not promoted"
    empty.learner = champion
    for each, challenger in empty.challengers.items():
        challenger.learner = model.learner if each == former else model.challengers[each].learner
    empty.statistics, empty.outcomes_learned = model.statistics, model.outcomes_learned
    return empty


def toml_lines(config: Config, factory: ModelFactory) -> list[str]:
    """Return the lines of the sections [learner] and [challengers.NAME] of a configuration file."""
    lines = ["[learner]", f"preset = {as_toml(config.learner.preset)}"]
    lines += _settings(list(config.learner.overrides), factory.learner)
    for name, settings in factory.challengers.items():
        challenger = config.challengers[name]
        lines += ["", f"[challengers.{name}]", f"learner = {as_toml(challenger.learner)}"]
        given = challenger.parameters
        if isinstance(settings, ForksSettings):
            lines += [f"preset = {as_toml(given.pop('preset'))}"] if "preset" in given else []
            lines += _settings(list(given), settings)
        else:
            values = dict(settings.parameters)
            lines += [f"{parameter} = {as_toml(values[parameter])}" for parameter in given]
    return lines


def _settings(names: list[str], learner: ForksSettings) -> list[str]:
    return [f"{name} = {as_toml(getattr(learner, name))}" for name in names]
