"""Settings of the command line that override others: `--set NAME=VALUE`."""

from __future__ import annotations

import tomllib
from typing import Any

from pipeline.errors import ConfigError
from pipeline.truncate import truncate


def parse_changes(changes: list[str]) -> dict[str, Any]:
    """Parse settings of the command line: values as in TOML, but text needs no quotes.

    Parameters
    ----------
    changes
        Settings as NAME=VALUE.

    Returns
    -------
    dict
        Values by name.

    Raises
    ------
    ConfigError
        A change is not NAME=VALUE, or names the preset.

    Examples
    --------
    >>> parse_changes(["width=2.0", "loss=hinge", "bounded=false", "kernel_columns=[0, 4]"])
    {'width': 2.0, 'loss': 'hinge', 'bounded': False, 'kernel_columns': [0, 4]}
    """
    settings: dict[str, Any] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise ConfigError(f"--set {truncate(change)}: expected is NAME=VALUE, such as width=2.0")
        if name.strip() == "preset":
            raise ConfigError(f"--set {change}: the preset is an option of its own: --preset {value.strip()}")
        settings[name.strip()] = _value(value.strip())
    return settings


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (RecursionError, ValueError):  # no TOML, or a number of thousands of digits
        return text
