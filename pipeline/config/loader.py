"""Load the configuration from a TOML file, the environment and flags.

Later sources win: defaults, `forks.toml` (or the file named), variables such as
`FORKS_KAFKA__BOOTSTRAP`, flags.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from pipeline.config.tree import Config
from pipeline.errors import ConfigError

DEFAULT_FILE = Path("forks.toml")
"""The file that is read when none is named."""
PREFIX = "FORKS_"
"""The prefix of the variables."""


class _Loaded(Config, BaseSettings):
    """The configuration, with sources to read it from."""

    model_config = SettingsConfigDict(
        extra="forbid", frozen=True, env_prefix=PREFIX, env_nested_delimiter="__"
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources, those that win first: flags, environment, file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load(path: Path | None = None, flags: dict[str, Any] | None = None) -> Config:
    """Load the configuration.

    Parameters
    ----------
    path
        The TOML file; None for `forks.toml` if there is one, else for defaults.
    flags
        The command line's settings by dotted name: `{"kafka.bootstrap": "127.0.0.1:9092"}`; None
        stands for a flag that was not given.

    Raises
    ------
    ConfigError
        A setting is unknown or its value is refused, or the file cannot be read. The message names the
        file, variable or flag, the key and what is accepted.
    """
    file = path or DEFAULT_FILE
    if path is not None and not path.is_file():
        raise ConfigError(f"there is no configuration file {path}")

    class Loaded(_Loaded):
        model_config = SettingsConfigDict(toml_file=file)

    given: dict[str, Any] = {}
    for name, value in (flags or {}).items():
        if value is not None:
            section, key = name.split(".")
            given.setdefault(section, {})[key] = value
    _refuse_unknown_sections()
    try:
        loaded = Loaded(**given)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    except SettingsError as error:
        raise ConfigError(_explain_json(error)) from error
    except ValidationError as error:
        reasons = [_explain(detail, given, file) for detail in error.errors()]
        raise ConfigError("\n       ".join(reasons)) from error
    return Config(**{name: getattr(loaded, name) for name in Config.model_fields})


def _refuse_unknown_sections() -> None:
    """Raise an error for a variable whose section does not exist, which pydantic would ignore.

    Raises
    ------
    ConfigError
        Naming the variable and the sections.
    """
    for variable in os.environ:
        section, nested, _ = variable.upper().removeprefix(PREFIX).partition("__")
        if variable.upper().startswith(PREFIX) and nested and section.lower() not in Config.model_fields:
            accepted = ", ".join(f"{PREFIX}{name.upper()}__..." for name in Config.model_fields)
            raise ConfigError(
                f"the environment ({variable}): there is no such section. Accepted here: {accepted}"
            )


def _explain_json(error: SettingsError) -> str:
    """Explain that a variable does not hold a table as JSON."""
    field = re.findall(r'field "(\w+)"', str(error))[0]
    variables = [name for name in sorted(os.environ) if name.upper().startswith(PREFIX + field.upper())]
    return (
        f"the environment ({', '.join(variables)}): {field} is a table, which a variable must hold as JSON: "
        f"{error.__cause__}"
    )


def _explain(detail: ErrorDetails, given: dict[str, Any], file: Path) -> str:
    """Explain why a setting is refused: where it stands, its key, the reason and its value."""
    path = [str(part) for part in detail["loc"]]
    key, origin = ".".join(path), _origin(path, given, file)
    if detail["type"] == "extra_forbidden":
        names = _accepted(path)
        near = difflib.get_close_matches(path[-1], names, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        return f"{origin}: {key} is not a setting{hint} Accepted here: {', '.join(names)}"
    message = detail["msg"].removeprefix("Value error, ")
    return f"{origin}: {key}: {message} (got {detail['input']!r})"


def _origin(path: list[str], given: dict[str, Any], file: Path) -> str:
    """Return the name of the source that a setting was read from."""
    if path[-1] in given.get(path[0], {}):
        # An option for a setting of [kafka] has its name; those of other sections are derived from --workers.
        return f"the command line (--{path[-1]})" if path[0] == "kafka" else "the command line"
    candidates = {PREFIX + "__".join(path[:depth]).upper() for depth in range(1, len(path) + 1)}
    variables = [name for name in os.environ if name.upper() in candidates]
    return f"the environment ({variables[0]})" if variables else str(file)


def _accepted(path: list[str]) -> list[str]:
    """Return the names that are accepted in the section of a setting."""
    section = Config.model_fields.get(path[0])
    known = section.annotation if len(path) > 1 and section else Config
    return sorted(known.model_fields) if isinstance(known, type) and issubclass(known, BaseModel) else []
