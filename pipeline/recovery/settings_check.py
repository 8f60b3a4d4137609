"""Refuse outputs that depend on other settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TypeAlias

from pipeline.errors import StateError
from pipeline.model.settings_text import (
    CHALLENGERS_PREFIX,
    KIND,
    LEARNER_PREFIX,
    LEARNER_TYPES,
    as_toml,
    parse_value,
    settings_under,
)
from pipeline.task.state import State

Changes: TypeAlias = dict[str, tuple[str | None, str | None]]
"""Settings that differ, as they were and as they are here; None where one is not there."""


def refuse_other_settings(state: State, settings: Mapping[str, str]) -> None:
    """Make sure that the outputs so far depend on these settings.

    Raises
    ------
    StateError
        Naming what differs, and how to go on.
    """
    stored = state.settings
    found = differences(stored, settings)
    if not found:
        return
    what = "; ".join(f"{name} is {current!r}, was {before!r}" for name, (before, current) in found.items())
    rebuild = ""
    if all(map(_may_be_rebuilt, found, found.values())):
        command = rebuild_command({name: current or "" for name, (_, current) in found.items()})
        rebuild = f"stop the group's workers and let it go on under these with `{command}`, or "
    raise StateError(
        f"the outputs so far were made under other settings: {what}. Go back to those, or {rebuild}"
        "take another kafka.group with another kafka.prefix"
    )


def differences(stored: Mapping[str, str], current: Mapping[str, str]) -> Changes:
    """What differs, as it is there and here; of a challenger that is another one, or missing, only its kind.

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
        if stored.get(name) != current.get(name):
            found[name] = stored.get(name), current.get(name)
    return found


def _may_be_rebuilt(name: str, values: tuple[str | None, str | None]) -> bool:
    return name.startswith(CHALLENGERS_PREFIX) or (name.startswith(LEARNER_PREFIX) and None not in values)


def rebuild_command(wanted: Mapping[str, str]) -> str:
    """The command after which a group goes on with these settings, challengers as the configuration has them.

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
