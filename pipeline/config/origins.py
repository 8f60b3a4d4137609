"""Find where a setting comes from: an option, the environment, a file, or the code's default.

The first of these that has a setting wins. Variables have names such as `FORKS_KAFKA__BOOTSTRAP`.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pydantic import Secret

from pipeline.config.client_tables import FILE_SUFFIX
from pipeline.config.durations import AS_TEXT
from pipeline.config.settings import Config
from pipeline.config.value_files import FILE_VARIABLE, read_value
from pipeline.errors import ConfigError

Place: TypeAlias = tuple[str, ...]
"""The names of a setting's section and of the setting; more than two names where a setting is a table."""
Source: TypeAlias = Literal["flag", "environment", "file", "default"]

DEFAULT_FILE: Final = Path("forks.toml")
"""The file that is read when none is named."""
PREFIX: Final = "FORKS_"
"""The prefix of the variables."""
MASK: Final = "***"
"""What is shown of a secret."""


class Origin(NamedTuple):
    """Where a setting comes from."""

    source: Source
    name: str
    """The option, the variable or the file; empty for a default."""


class Variable(NamedTuple):
    """A variable of the environment that holds settings."""

    name: str
    """As the environment has it; with `_FILE` at its end if it names the file of the value."""
    value: str


class Setting(NamedTuple):
    """A setting as it is in force."""

    place: Place
    value: Any
    """As a configuration file has it, with `MASK` for secrets; None if it is not set."""
    origin: Origin

    @property
    def key(self) -> str:
        """The names with dots between them."""
        return ".".join(self.place)


class Origins:
    """What the configuration is read from.

    Parameters
    ----------
    path
        The TOML file; None for `DEFAULT_FILE`, which need not exist.
    flags
        The command line's settings by dotted name; None stands for an option that was not given.

    Attributes
    ----------
    file
        The file.
    flags
        The options that were given, by place.
    variables
        The variables that hold settings, by name in upper case and without `_FILE`.

    Raises
    ------
    ConfigError
        A variable is of no section, is set twice, or names a file that cannot be read.
    """

    def __init__(self, path: Path | None = None, flags: Mapping[str, Any] | None = None) -> None:
        self.file = path or DEFAULT_FILE
        given = {name: value for name, value in (flags or {}).items() if value is not None}
        self.flags: dict[Place, Any] = {tuple(name.split(".")): value for name, value in given.items()}
        self.variables = _read_variables()

    def of(self, place: Place) -> Origin:
        """Return where a setting or a table of settings comes from."""
        if place in self.flags:
            return Origin("flag", f"--{place[-1]}")
        if variable := self._variable(place):
            return Origin("environment", variable)
        if file := self._file(place):
            return Origin("file", file)
        return Origin("default", "")

    @cached_property
    def _content(self) -> Mapping[str, Any]:
        return tomllib.loads(self.file.read_text("utf-8")) if self.file.is_file() else {}

    def _variable(self, place: Place) -> str | None:
        """Return the variable of the setting, or one of a table that has it, or one of a part of it."""
        names = [(PREFIX + "__".join(place[:depth])).upper() for depth in range(len(place), 0, -1)]
        for outside, name in enumerate(names):
            variable = self.variables.get(name)
            if variable and _has_json(variable.value, place[len(place) - outside :]):
                return variable.name
        inner = f"{names[0]}__"
        return next((each.name for key, each in self.variables.items() if key.startswith(inner)), None)

    def _file(self, place: Place) -> str | None:
        """Return the file that has the setting: that of the settings, or that of the stream's definition."""
        definition = self._definition if place[0] == "stream" else None
        if definition is None:
            return str(self.file) if _has(self._content, place) else None
        try:
            found = _has(tomllib.loads(Path(definition).read_text("utf-8")), place[1:])
        except (OSError, ValueError):
            return None
        return definition if found else None

    @cached_property
    def _definition(self) -> str | None:
        """The file of the stream's definition; None if the definition stands with the other settings."""
        variable = self.variables.get(f"{PREFIX}STREAM")
        path = json.loads(variable.value) if variable else self._content.get("stream")
        return path if isinstance(path, str) else None


def effective(config: Config, origins: Origins) -> list[Setting]:
    """Return every setting with its value and where that comes from, in the order of the settings.

    Parameters
    ----------
    config
        What `pipeline.config.loader.load` has returned.
    origins
        What it was read from.
    """
    leaves = _leaves(config.model_dump(context=AS_TEXT))
    return [Setting(place, value, origins.of(place)) for place, value in leaves]


def _leaves(tree: Mapping[str, Any], place: Place = ()) -> Iterator[tuple[Place, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*place, name))
        elif isinstance(value, Secret):
            yield (*place, name), MASK
        else:
            yield (*place, name), str(value) if isinstance(value, Path) else value


def _read_variables() -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    for variable, value in os.environ.items():
        name = variable.upper().removesuffix(FILE_VARIABLE)
        section, nested, _ = name.removeprefix(PREFIX).partition("__")
        if not name.startswith(PREFIX) or not (nested or section.lower() in Config.model_fields):
            continue
        if section.lower() not in Config.model_fields:  # which pydantic would ignore
            accepted = ", ".join(f"{PREFIX}{each.upper()}__..." for each in Config.model_fields)
            near = difflib.get_close_matches(section.lower(), Config.model_fields, n=1)
            key = variable.upper().partition("__")[2]
            hint = f"; did you mean {PREFIX}{near[0].upper()}__{key}?" if near else "."
            raise ConfigError(
                f"the environment ({variable}): there is no such section{hint} Accepted here: {accepted}"
            )
        if name in found:
            first, second = sorted((found[name].name, variable))
            raise ConfigError(f"the environment: both {first} and {second} are set; keep one of them")
        in_file = variable.upper() != name
        text = read_value(value, f"the environment ({variable})") if in_file else value
        found[name] = Variable(variable, text)
    return found


def _has_json(text: str, place: Place) -> bool:
    """Return whether a variable's value is that of the setting, or a table in JSON that has it."""
    try:
        return not place or _has(json.loads(text), place)
    except ValueError:
        return False


def _has(tree: Any, place: Place) -> bool:
    """Return whether a setting, or the file of its value, is named in a tree; lists are not looked into."""
    if not place or isinstance(tree, list):
        return True
    if not isinstance(tree, Mapping):
        return False
    name, rest = place[0], place[1:]
    return _has(tree.get(name), rest) if rest else name in tree or name + FILE_SUFFIX in tree
