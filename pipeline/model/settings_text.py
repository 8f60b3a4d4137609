"""What the outputs depend on, as state records keep it: text by name."""

from __future__ import annotations

import math
from ast import literal_eval
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, Literal, get_origin, get_type_hints

from forks import ForksSettings
from pipeline.config.tree import FORKS, Labels
from pipeline.errors import StateError
from pipeline.model.rival import RIVALS, RivalSettings, parameter_types
from pipeline.model.shadow import ChallengerSettings
from pipeline.records.encoding import encode

LEARNER: Final = "learner."
"""What the names of the learner's settings begin with."""
CHALLENGERS: Final = "challengers."
"""What the names of the challengers' settings begin with: then comes the challenger's own."""
KIND: Final = "learner"
"""The setting that says what a challenger is: FORKS, or which rival."""
_TYPES: Final = get_type_hints(ForksSettings)


def learner_text(learner: ForksSettings) -> dict[str, str]:
    """The learner's settings as text, by name.

    Examples
    --------
    >>> text = learner_text(ForksSettings.paper(8))
    >>> text["learner.width"], text["learner.clip"], text["learner.kernel_columns"]
    ('1.0', 'inf', '(0, 8)')
    >>> learner_from(text) == ForksSettings.paper(8)
    True
    """
    return {LEARNER + name: str(value) for name, value in asdict(learner).items()}


def labels_text(labels: Labels) -> dict[str, str]:
    """The settings of a policy as text, by name; none where all labels are learned as they come.

    Examples
    --------
    >>> labels_text(Labels()), labels_text(Labels(policy="random"))["labels.rate"]
    ({}, '0.2')
    """
    if labels.policy == "all":
        return {}
    return {f"labels.{name}": str(value) for name, value in labels.model_dump().items()}


def learner_from(settings: Mapping[str, str]) -> ForksSettings:
    """The learner's settings from `learner_text`, whatever else is beside them.

    Raises
    ------
    StateError
        If they are not those of this program's learner.
    """
    return _forks_from(_with_prefix(settings, LEARNER), LEARNER)


def challengers_text(challengers: Mapping[str, ChallengerSettings]) -> dict[str, str]:
    """The challengers' settings as text, by name.

    Examples
    --------
    >>> text = challengers_text({"small": RivalSettings.of("perceptron", {"width": 2.0})})
    >>> text
    {'challengers.small.learner': 'perceptron', 'challengers.small.width': '2.0'}
    >>> challengers_from(text)["small"].parameters
    (('width', 2.0),)
    """
    text: dict[str, str] = {}
    for name, contender in challengers.items():
        if isinstance(contender, ForksSettings):
            found: dict[str, Any] = {KIND: FORKS} | asdict(contender)
        else:
            found = {KIND: contender.kind} | dict(contender.parameters)
        text |= {f"{CHALLENGERS}{name}.{setting}": str(value) for setting, value in found.items()}
    return text


def challengers_from(settings: Mapping[str, str]) -> dict[str, ChallengerSettings]:
    """The challengers from `challengers_text`, whatever else is beside them.

    Raises
    ------
    StateError
        If this program has no such challengers.
    """
    names = sorted({name.split(".")[0] for name in _with_prefix(settings, CHALLENGERS)})
    return {name: _challenger_from(settings, f"{CHALLENGERS}{name}.") for name in names}


def _challenger_from(settings: Mapping[str, str], prefix: str) -> ChallengerSettings:
    text = _with_prefix(settings, prefix)
    kind = text.pop(KIND, "")
    if kind == FORKS:
        return _forks_from(text, prefix)
    types = parameter_types(kind) if kind in RIVALS else {}
    if not text or not text.keys() <= types.keys():
        raise StateError(f"the outputs were made beside another version of the challenger {prefix}{kind}")
    try:
        return RivalSettings.of(kind, {name: _value(types[name], value) for name, value in text.items()})
    except (ValueError, SyntaxError) as error:
        raise StateError(f"no worker wrote these settings of a challenger: {error}") from error


def _forks_from(text: Mapping[str, str], prefix: str) -> ForksSettings:
    if text.keys() != _TYPES.keys():
        names = ", ".join(sorted(prefix + name for name in text.keys() ^ _TYPES.keys()))
        raise StateError(f"the outputs were made by another version of the learner, which differs in {names}")
    try:
        return ForksSettings(**{name: _value(_TYPES[name], value) for name, value in text.items()})
    except (ValueError, SyntaxError) as error:
        raise StateError(f"no worker wrote these settings of a learner: {error}") from error


def _with_prefix(settings: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): text for name, text in settings.items() if name.startswith(prefix)}


def _value(kind: Any, text: str) -> Any:
    if kind is float:
        return float(text)  # which may be infinite
    return text if get_origin(kind) is Literal else literal_eval(text)


def as_toml(value: object) -> str:
    """A value of a setting as TOML has it.

    Examples
    --------
    >>> [as_toml(value) for value in (200, 2.0, float("inf"), True, (0, 4), "hinge")]
    ['200', '2.0', 'inf', 'true', '[0,4]', '"hinge"']
    """
    return "inf" if isinstance(value, float) and math.isinf(value) else encode(value).decode()
