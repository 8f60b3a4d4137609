"""Tell where each value of the configuration comes from: a flag, the environment, a file, or the code."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, BeforeValidator, Secret
from pydantic.fields import FieldInfo

from pipeline.config.durations import duration_text, milliseconds
from pipeline.config.loader import DEFAULT_FILE, PREFIX
from pipeline.config.settings import Config
from pipeline.config.value_files import FILE_SUFFIX, FILE_VARIABLE

Source: TypeAlias = Literal["flag", "environment", "file", "default"]

MASK: Final = "***"
"""What is shown of a secret."""


class Setting(NamedTuple):
    """A setting as it is in force."""

    path: tuple[str, ...]
    """Its section and name; more than two names where a setting is a table."""
    value: Any
    """As a configuration file has it, with `MASK` for secrets; None if it is not set."""
    source: Source
    origin: str
    """The flag, the variable or the file; empty for a default."""

    @property
    def key(self) -> str:
        """The names with dots between them."""
        return ".".join(self.path)


def effective(
    config: Config, path: Path | None = None, flags: Mapping[str, Any] | None = None
) -> list[Setting]:
    """Return every setting with its value and where that comes from.

    Parameters
    ----------
    config
        What `pipeline.config.loader.load` has returned.
    path
        The file that it has read, as it was named there.
    flags
        The flags that it was given.

    Returns
    -------
    list of Setting
        In the order of the settings.
    """
    file = path or DEFAULT_FILE
    content = tomllib.loads(file.read_text("utf-8")) if file.is_file() else {}
    given = {tuple(name.split(".")) for name, value in (flags or {}).items() if value is not None}
    settings = []
    for place, value in _leaves(config):
        source: Source = "default"
        origin = ""
        if place in given:
            source, origin = "flag", f"--{place[-1]}"
        elif variable := _variable(place):
            source, origin = "environment", variable
        elif found := _file(place, content, file):
            source, origin = "file", found
        settings.append(Setting(place, value, source, origin))
    return settings


def _leaves(config: Config) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in Config.model_fields:
        section = getattr(config, name)
        yield from _leaves_of((name,), section)


def _leaves_of(place: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the settings within a value, in the order of their definition."""
    if isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            yield from _leaves_of((*place, name), _as_written(getattr(value, name), field))
        for name, extra in (value.model_extra or {}).items():
            yield (*place, name), extra
    elif isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves_of((*place, name), inner)
    elif isinstance(value, Secret):
        yield place, MASK
    elif isinstance(value, Mapping):  # nothing is set in it
        return
    else:
        yield place, str(value) if isinstance(value, Path) else value


def _as_written(value: Any, field: FieldInfo) -> Any:
    is_duration = BeforeValidator(milliseconds) in field.metadata or "milliseconds" in repr(field.annotation)
    return duration_text(value) if is_duration and isinstance(value, int) else value


def _variable(place: tuple[str, ...]) -> str | None:
    """Return the variable that a setting was read from."""
    names = {name.upper(): name for name in os.environ}
    for depth in range(len(place), 0, -1):
        name = (PREFIX + "__".join(place[:depth])).upper()
        rest = place[depth:]
        if name + FILE_VARIABLE in names and not rest:
            return names[name + FILE_VARIABLE]
        for candidate in (name, name + FILE_VARIABLE):
            variable = names.get(candidate)
            if variable is not None and (not rest or _in_json(variable, rest)):
                return variable
    return None


def _in_json(variable: str, rest: tuple[str, ...]) -> bool:
    text = os.environ[variable]
    try:
        if variable.upper().endswith(FILE_VARIABLE):
            text = Path(text).read_text("utf-8")
        return _has(json.loads(text), rest)
    except (OSError, ValueError):
        return False


def _file(place: tuple[str, ...], content: dict[str, Any], file: Path) -> str | None:
    """Return the file that a setting was read from."""
    if place[0] == "stream" and isinstance(definition := content.get("stream"), str):
        try:
            within = tomllib.loads(Path(definition).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return definition if _has(within, place[1:]) else None
    return str(file) if _has(content, place) else None


def _has(tree: Any, place: tuple[str, ...]) -> bool:
    """Return whether a setting, or the file of its value, is named in a tree."""
    for name in place[:-1]:
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return isinstance(tree, Mapping) and (place[-1] in tree or place[-1] + FILE_SUFFIX in tree)
