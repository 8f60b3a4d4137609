"""Refuse to go on under settings that differ from those of the outputs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from pipeline.errors import StateError
from pipeline.model.settings_text import (
    CHALLENGERS_PREFIX,
    CORRECTIONS,
    DEFAULT_NAMES,
    DEFAULTS,
    FEATURE_KIND,
    KIND,
    LEARNER_PREFIX,
    LEARNER_TYPES,
    OUTPUTS_FORMAT,
    STREAM_FEATURES,
    STREAM_NAMES,
    STREAM_TABLES,
    TARGET_DEFAULTS,
    as_toml,
    parse_value,
    settings_under,
)
from pipeline.task.state import State

Changes: TypeAlias = dict[str, tuple[str | None, str | None]]
"""Settings that differ, each with its stored and its current value; None where it is missing."""
_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {FEATURE_KIND: "running"}
    | {OUTPUTS_FORMAT: "json"}
    | {STREAM_NAMES: DEFAULT_NAMES, STREAM_FEATURES: "", STREAM_TABLES: "", CORRECTIONS: "off"}
    | dict(TARGET_DEFAULTS)
    | {LEARNER_PREFIX + name: str(default) for name, default in DEFAULTS.items() if default is not None}
)
"""Values of settings that are not written where they have them."""


def refuse_other_settings(state: State, settings: Mapping[str, str]) -> None:
    """Check that the outputs so far were made under these settings.

    Parameters
    ----------
    state
        The committed state record, which holds the settings of the outputs.
    settings
        The current settings.

    Raises
    ------
    StateError
        Settings differ; the text names them and what to do.
    """
    stored = state.settings
    found = differences(stored, settings)
    if not found:
        return
    changes = "; ".join(f"{name} is {new!r}, was {old!r}" for name, (old, new) in found.items())
    rebuild = ""
    if all(map(_may_be_rebuilt, found, found.values())):
        command = rebuild_command({name: current or "" for name, (_, current) in found.items()})
        rebuild = f"stop the group's workers and continue under the new ones with `{command}`, or "
    way_back = "Go back to those, or "
    if FEATURE_KIND in found:
        way_back = f'Set features.kind = "{found[FEATURE_KIND][0]}" to go on with those, or '
    raise StateError(
        f"the outputs so far were made under other settings: {changes}. {way_back}{rebuild}"
        "take another kafka.group with another kafka.prefix"
    )


def differences(stored: Mapping[str, str], current: Mapping[str, str]) -> Changes:
    """Return the settings that differ; only the kind of a challenger that is missing or of another kind.

    Examples
    --------
    >>> current = {"tables": "b", "challengers.x.learner": "rbp", "challengers.x.seed": "0"}
    >>> differences({"tables": "a"}, current)
    {'challengers.x.learner': (None, 'rbp'), 'tables': ('a', 'b')}
    """
    found: Changes = {}
    for setting in sorted(stored.keys() | current.keys()):
        name = setting
        if name.startswith(CHALLENGERS_PREFIX):
            kind = f"{CHALLENGERS_PREFIX}{name.split('.')[1]}.{KIND}"
            name = name if stored.get(kind) == current.get(kind) else kind
        if stored.get(name, _DEFAULTS.get(name)) != current.get(name, _DEFAULTS.get(name)):
            before, now = (each.get(name, _DEFAULTS.get(name)) for each in (stored, current))
            found[name] = before, now
    return found


def _may_be_rebuilt(name: str, values: tuple[str | None, str | None]) -> bool:
    old, new = values
    known = old is not None or name.removeprefix(LEARNER_PREFIX) in DEFAULTS
    return name.startswith(CHALLENGERS_PREFIX) or (
        name.startswith(LEARNER_PREFIX) and known and new is not None
    )


def rebuild_command(wanted: Mapping[str, str]) -> str:
    """Return the command that rebuilds a group's state under other settings.

    Parameters
    ----------
    wanted
        The settings that differ, with their new values. Challengers need no option: the command takes them
        from the configuration.

    Returns
    -------
    str
        The command, quoted for a shell.

    Examples
    --------
    >>> rebuild_command({"learner.loss": "hinge", "learner.kernel_columns": "(0, 8)"})
    "forks rebuild --set learner.loss=hinge --set 'learner.kernel_columns=[0,8]' --install"
    >>> rebuild_command({"challengers.small.learner": "nogd"})
    'forks rebuild --install'
    """
    changes = []
    for name, text in settings_under(wanted, LEARNER_PREFIX).items():
        value = parse_value(LEARNER_TYPES[name], text)
        change = f"{LEARNER_PREFIX}{name}={value if isinstance(value, str) else as_toml(value)}"
        changes.append(f"--set {shlex.quote(change)}")
    return " ".join(["forks rebuild", *changes, "--install"])
