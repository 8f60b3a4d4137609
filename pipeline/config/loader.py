"""Load the configuration from a TOML file, the environment and flags.

The later wins: defaults, `forks.toml` (or the file named), variables such as
`FORKS_KAFKA__BOOTSTRAP`, flags.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    ValidationError,
)
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
PREFIX = "FORKS_"


class _Loaded(Config, BaseSettings):
    """The configuration, read from flags over environment over file."""

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
        """Flags over environment over file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load(path: Path | None = None, flags: dict[str, Any] | None = None) -> Config:
    """Read the configuration.

    Parameters
    ----------
    path
        The TOML file; without it `forks.toml` if there is one, else defaults.
    flags
        What the command line sets, by dotted name: `{"kafka.bootstrap": "127.0.0.1:9092"}`; None
        stands for a flag that was not given.

    Raises
    ------
    ConfigError
        Naming the file, variable or flag, the key and what is accepted.
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
        return Loaded(**given)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    except SettingsError as error:
        raise ConfigError(_explain_json(error)) from error
    except ValidationError as error:
        lines = [_explain(detail, given, file) for detail in error.errors()]
        raise ConfigError("\n       ".join(lines)) from error


def _refuse_unknown_sections() -> None:
    """Find variables that look like settings, but would be passed over for their section's name."""
    for variable in os.environ:
        section, nested, _ = variable.removeprefix(PREFIX).partition("__")
        if variable.startswith(PREFIX) and nested and section.lower() not in Config.model_fields:
            accepted = ", ".join(f"{PREFIX}{name.upper()}__..." for name in Config.model_fields)
            raise ConfigError(f"the environment ({variable}): there is no such section. Accepted: {accepted}")


def _explain_json(error: SettingsError) -> str:
    field = re.findall(r'field "(\w+)"', str(error))[0]
    variables = [name for name in sorted(os.environ) if name.upper().startswith(PREFIX + field.upper())]
    return (
        f"the environment ({', '.join(variables)}): {field} is a table, which a variable holds as JSON; "
        f"this is none: {error.__cause__}"
    )


def _explain(detail: ErrorDetails, given: dict[str, Any], file: Path) -> str:
    path = [str(part) for part in detail["loc"]]
    key = ".".join(path)
    if path[-1] in given.get(path[0], {}):
        origin = "the command line"
    else:
        candidates = {PREFIX + "__".join(path[:depth]).upper() for depth in range(1, len(path) + 1)}
        variables = [name for name in os.environ if name.upper() in candidates]
        origin = f"the environment ({variables[0]})" if variables else str(file)
    if detail["type"] == "extra_forbidden":
        names = _accepted(path)
        near = difflib.get_close_matches(path[-1], names, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        return f"{origin}: {key} is not a setting{hint} Accepted here: {', '.join(names)}"
    message = detail["msg"].removeprefix("Value error, ")
    return f"{origin}: {key}: {message} (got {detail['input']!r})"


def _accepted(path: list[str]) -> list[str]:
    section = Config.model_fields.get(path[0])
    known = section.annotation if len(path) > 1 and section else Config
    return sorted(known.model_fields) if isinstance(known, type) and issubclass(known, BaseModel) else []
