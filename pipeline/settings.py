"""What the outputs depend on, as state records keep it: text by name."""

from __future__ import annotations

import math
import shlex
from ast import literal_eval
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, Literal, get_origin, get_type_hints

from forks import ForksSettings
from pipeline.errors import StateError
from pipeline.records import encode
from pipeline.state import State

LEARNER: Final = "learner."
"""What the names of the learner's settings begin with."""
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


def learner_from(settings: Mapping[str, str]) -> ForksSettings:
    """The learner's settings from `learner_text`, whatever else is beside them.

    Raises
    ------
    StateError
        If they are not those of this program's learner.
    """
    text = {name.removeprefix(LEARNER): value for name, value in settings.items() if name.startswith(LEARNER)}
    if text.keys() != _TYPES.keys():
        names = ", ".join(sorted(LEARNER + name for name in text.keys() ^ _TYPES.keys()))
        raise StateError(f"the outputs were made by another version of the learner, which differs in {names}")
    try:
        return ForksSettings(**{name: _value(name, value) for name, value in text.items()})
    except (ValueError, SyntaxError) as error:
        raise StateError(f"no worker wrote these settings of a learner: {error}") from error


def _value(name: str, text: str) -> Any:
    kind = _TYPES[name]
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


def refuse_other_settings(state: State, settings: Mapping[str, str]) -> None:
    """Make sure that the outputs so far depend on these settings.

    Raises
    ------
    StateError
        Naming what differs, and how to go on.
    """
    there = state.settings
    names = [name for name in sorted(settings.keys() | there.keys()) if settings.get(name) != there.get(name)]
    if not names:
        return
    what = "; ".join(f"{name} is {settings.get(name)!r}, was {there.get(name)!r}" for name in names)
    rebuild = ""
    if all(name.startswith(LEARNER) and name in settings and name in there for name in names):
        command = rebuild_command({name: settings[name] for name in names})
        rebuild = f"stop the group's workers and let it go on under these with `{command}`, or "
    raise StateError(
        f"the outputs so far were made under other settings: {what}. Go back to those, or {rebuild}"
        "take another kafka.group with another kafka.prefix"
    )


def rebuild_command(wanted: Mapping[str, str]) -> str:
    """The command after which a group goes on with these settings of the learner.

    Examples
    --------
    >>> rebuild_command({"learner.loss": "hinge", "learner.kernel_columns": "(0, 8)"})
    "forks rebuild --set learner.loss=hinge --set 'learner.kernel_columns=[0,8]' --install"
    """
    changes = []
    for name, text in wanted.items():
        value = _value(name.removeprefix(LEARNER), text)
        change = f"{name}={value if isinstance(value, str) else as_toml(value)}"
        changes.append(f"--set {shlex.quote(change)}")
    return " ".join(["forks rebuild", *changes, "--install"])
