"""Load the configuration from a TOML file, the environment and flags.

Later sources win: defaults, `forks.toml` (or the file named), variables such as
`FORKS_KAFKA__BOOTSTRAP`, flags. No error shows a value of `kafka.client` or `registry.client`, nor one that
was read from the file that a variable names.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from pipeline.config.client_tables import read_client_files
from pipeline.config.origins import PREFIX, Origins, Place
from pipeline.config.section import Section
from pipeline.config.settings import FIXED, LEARNERS, Config
from pipeline.config.stream import KUAIREC, Stream
from pipeline.config.value_files import FILE_VARIABLE
from pipeline.errors import ConfigError
from pipeline.truncate import shown

CLIENT_SECTIONS = ("kafka", "registry")
"""Sections with settings of a client, any of which may be a secret. A url may have one by mistake."""
ELSEWHERE: Final = 0.75
"""How near a name of another section has to be, from 0 to 1."""
LARGEST_FILE = 2**20
"""Bytes of a configuration file, at most."""


def _read_definition(stream: object) -> object:
    """Read the definition of a stream, if what stands in its place is the path of a file."""
    if not isinstance(stream, str):
        return stream
    file = Path(stream)
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise ValueError(f"{file} has more than {LARGEST_FILE:,} bytes, which is too large for settings")
        return Stream.model_validate(tomllib.loads(file.read_text("utf-8")))
    except ValidationError as error:
        reasons = [
            f"{'.'.join(_without_kinds(detail['loc'])) or 'stream'}: "
            + detail["msg"].removeprefix("Value error, ")
            for detail in error.errors()
        ]
        raise ValueError(f"{file}: {'; '.join(reasons)}") from None
    except (OSError, RecursionError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(_explain_unreadable(error, file)) from None


def read_definition(file: Path) -> Stream:
    """Read the definition of a stream from a TOML file of its own.

    Raises
    ------
    ConfigError
        The file cannot be read, or the definition is refused. The message names the file and the setting.
    """
    try:
        definition = _read_definition(str(file))
    except ValueError as error:
        raise ConfigError(str(error)) from None
    assert isinstance(definition, Stream)
    return definition


class _Loaded(Config, BaseSettings):
    """The configuration, with sources to read it from."""

    stream: Annotated[Stream, BeforeValidator(_read_definition)] = KUAIREC

    model_config = SettingsConfigDict(
        extra="forbid", frozen=True, env_prefix=PREFIX, env_nested_delimiter="__"
    )
    variables: ClassVar[Mapping[str, str]] = {}
    """The variables that hold settings, by name in lower case."""

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
        assert isinstance(env_settings, EnvSettingsSource)
        env_settings.env_vars = cls.variables
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
    if path is not None and not path.is_file():
        raise ConfigError(f"there is no configuration file {path}")
    origins = Origins(path, flags)
    file = origins.file
    if file.is_file() and file.stat().st_size > LARGEST_FILE:
        raise ConfigError(f"{file} has more than {LARGEST_FILE:,} bytes, which is too large for settings")
    loaded = _load(origins)
    if isinstance(loaded, str):  # raised here, so that no error that holds what was read is its context
        raise ConfigError(loaded)
    sections: dict[str, Any] = {name: getattr(loaded, name) for name in Config.model_fields}
    for name in CLIENT_SECTIONS:
        section = sections[name]
        client = read_client_files(section.client, f"{name}.client")
        sections[name] = section.model_copy(update={"client": client})
    return Config(**sections)


def _load(origins: Origins) -> Config | str:
    """Return the settings, or why they are refused."""

    class Loaded(_Loaded):
        model_config = SettingsConfigDict(toml_file=origins.file)
        variables = {name.lower(): variable.value for name, variable in origins.variables.items()}

    given: dict[str, Any] = {}
    for (section, key), value in origins.flags.items():
        given.setdefault(section, {})[key] = value
    try:
        return Loaded(**given)
    except ValidationError as error:
        return "\n       ".join(_explain(detail, origins) for detail in error.errors())
    except SettingsError as error:
        return _explain_json(error)
    except (OSError, RecursionError, ValueError) as error:
        return _explain_unreadable(error, origins.file)


def _explain_unreadable(error: Exception, file: Path) -> str:
    """Explain why nothing can be read; the reason has no text of the file."""
    match error:
        case tomllib.TOMLDecodeError():
            reason = f"is not valid TOML: {error}"
        case OSError():
            reason = f"cannot be read: {error.strerror}"
        case UnicodeDecodeError():
            reason = "cannot be read: it is not text in UTF-8"
        case RecursionError():
            reason = "or a variable has a value that is nested too deeply"
        case _:  # ValueError
            reason = "or a variable has a number of too many digits"
    return f"{file} {reason}"


def _explain_json(error: SettingsError) -> str:
    """Explain that a variable does not hold a table as JSON."""
    field = re.findall(r'field "(\w+)"', str(error))[0]
    variables = [name for name in sorted(os.environ) if name.upper().startswith(PREFIX + field.upper())]
    return (
        f"the environment ({', '.join(variables)}): {field} is a table, which a variable must hold as JSON: "
        f"{error.__cause__}"
    )


def _explain(detail: ErrorDetails, origins: Origins) -> str:
    """Explain why a setting is refused: where it stands, its key, the reason and its value."""
    path = tuple(_without_kinds(detail["loc"]))
    message = detail["msg"].removeprefix("Value error, ")
    if not path:  # what no single setting is to blame for, whose message names those that are
        return f"{origins.file}: {message}"
    key = ".".join(path)
    origin = _named(path[:-1] or path if detail["type"] == "missing" else path, origins)
    if key in FIXED:
        return f"{origin}: {key} is not a setting: its value is fixed at {FIXED[key]}. Remove it"
    if detail["type"] == "extra_forbidden":
        names = _accepted(path)
        near = _nearest(path, names)
        hint = f"; did you mean {near}?" if near else "."
        return f"{origin}: {key} is not a setting{hint} Accepted here: {', '.join(names)}"
    if detail["type"] == "missing" and path[:1] == ("challengers",) and path[2:] == ("learner",):
        return f"{origin}: {key} is missing. The learners are {', '.join(LEARNERS)}"
    secret = path[0] in CLIENT_SECTIONS and path[1:2] in {(), ("client",), ("url",)}
    if secret or origin.upper().endswith(f"{FILE_VARIABLE})"):
        return f"{origin}: {key}: {message}"
    return f"{origin}: {key}: {message} (got {shown(detail['input'])})"


def _without_kinds(location: Sequence[int | str]) -> list[str]:
    """Return the names of a setting without the kinds that pydantic adds behind a target or a feature.

    Examples
    --------
    >>> _without_kinds(("stream", "features", "pace", "number", "low"))
    ['stream', 'features', 'pace', 'low']
    """
    parts = [str(part) for part in location]
    return [
        part
        for number, part in enumerate(parts)
        if not ("target" in parts[:number][-1:] and part in {"binary", "regression"})
        and "features" not in parts[: max(0, number - 1)][-1:]
    ]


def _named(path: Place, origins: Origins) -> str:
    """Return where a setting, or the table that lacks it, comes from; the file if it is nowhere."""
    source, name = origins.of(path)
    if source == "flag":
        # An option for a setting of [kafka] has its name; those of other sections are derived from --workers.
        return f"the command line ({name})" if path[0] == "kafka" else "the command line"
    return f"the environment ({name})" if source == "environment" else str(origins.file)


def _nearest(path: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the setting whose name is nearest to one that there is not, in its section or else in another.

    Examples
    --------
    >>> _nearest(["kafka", "bootstrp"], ["bootstrap", "group"]), _nearest(["kafka", "windw"], ["group"])
    ('kafka.bootstrap', 'join.window')
    """
    *section, name = path
    if near := difflib.get_close_matches(name, names, n=1):
        return ".".join([*section, *near])
    others: dict[str, list[str]] = {}
    for other, field in Config.model_fields.items():
        if isinstance(kind := field.annotation, type) and issubclass(kind, Section):
            for key in kind.model_fields:
                others.setdefault(key, []).append(f"{other}.{key}")
    elsewhere = difflib.get_close_matches(name, others, n=1, cutoff=ELSEWHERE)
    return " or ".join(others[elsewhere[0]]) if elsewhere else None


def _accepted(path: Place) -> list[str]:
    """Return the names that are accepted in the section of a setting."""
    known: Any = Config
    for name in path[:-1]:
        fields = known.model_fields if isinstance(known, type) and issubclass(known, BaseModel) else {}
        known = fields[name].annotation if name in fields else None
    return sorted(known.model_fields) if isinstance(known, type) and issubclass(known, BaseModel) else []
