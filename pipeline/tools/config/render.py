"""Show the settings that are in force, as a file in which each line says where its value comes from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pipeline.config.origins import Setting
from pipeline.tools.config.toml import toml_key, toml_value

COLUMN = 44
"""Where the comments begin, unless a value is longer."""


def render(settings: Iterable[Setting]) -> str:
    """Return the settings as TOML, those that are not set as comments.

    Parameters
    ----------
    settings
        The settings, those of a section one after the other.
    """
    sections: dict[tuple[str, ...], list[str]] = {}  # one header of each, though its tables stand between
    for path, value, (source, origin) in settings:
        text = f"{toml_key(path[-1])} = {'...' if value is None else toml_value(value)}"
        where = source if not origin else f"{source}, {origin}"
        line = f"{'#' if value is None else ''}{text}".ljust(COLUMN) + f" # {where}"
        sections.setdefault(path[:-1], []).append(line)
    return "\n\n".join(
        "\n".join([f"[{'.'.join(map(toml_key, section))}]", *lines]) for section, lines in sections.items()
    )


def as_objects(settings: Iterable[Setting]) -> list[dict[str, Any]]:
    """Return the settings as JSON objects."""
    return [
        {
            "key": each.key,
            "value": each.value,
            "source": each.origin.source,
            "origin": each.origin.name or None,
        }
        for each in settings
    ]
