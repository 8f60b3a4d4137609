"""Tables of settings for clients, `kafka.client` and `registry.client`. Any value may be a secret."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Secret

from pipeline.config.value_files import read_value, shown_path
from pipeline.errors import ConfigError

FILE_SUFFIX: Final = ".file"
"""What the name of a setting of librdkafka ends with whose value is in a file."""
LOCATION_SUFFIX: Final = ".location"
"""What the names of librdkafka's own settings end with that are paths."""
FILES_OF_LIBRDKAFKA: Final = frozenset(
    f"sasl.oauthbearer.assertion.{name}" for name in ("file", "private.key.file", "jwt.template.file")
)
"""Settings of librdkafka itself that end with `FILE_SUFFIX`."""
SEARCHED: Final = "probe"
"""The location with which librdkafka looks for certificates itself."""
REGISTRY_NAMES: Final = frozenset({"url", "timeout", "max.retries"})
"""Settings of the registry's client that are set for it."""
NESTED_NAMES: Final = 6
"""Parts of a dotted name of librdkafka, at most."""


def _client_value(value: object) -> object:
    if not isinstance(value, str | int | float | bool | Secret):
        raise ValueError("a setting of librdkafka is text, a number, true or false")  # noqa: TRY004 - pydantic's
    return value


def _client_table(client: object, of: str = "librdkafka", section: str = "kafka.client") -> object:
    """Refuse names without quotes, of which TOML makes tables."""
    if isinstance(client, dict):
        lines = [
            f'"{name}" = ...'
            for key, value in client.items()
            if isinstance(key, str) and "." not in key
            for name in _dotted_names(key, value, NESTED_NAMES)
        ]
        if lines:
            raise ValueError(
                f"a name of {of} has dots and needs quotes: write {', '.join(lines)} under [{section}]"
            )
    return client


def _registry_table(client: object) -> object:
    """Refuse names without quotes, and those that are settings of their own."""
    taken = sorted(REGISTRY_NAMES & client.keys()) if isinstance(client, dict) else []
    if taken:
        raise ValueError(f"{', '.join(taken)}: url stands in [registry]; timeout and retries are fixed")
    return _client_table(client, "the registry's client", "registry.client")


def _dotted_names(name: str, value: object, depth: int) -> list[str]:
    """Return the names that a table stands for; none if the value is no table."""
    if not (isinstance(value, dict) and depth):
        return []
    names: list[str] = []
    for key, inner in value.items():
        names += _dotted_names(f"{name}.{key}", inner, depth - 1) or [f"{name}.{key}"]
    return names


ClientValue = Annotated[Secret[str | int | float | bool], BeforeValidator(_client_value)]
"""A setting of librdkafka. Any may be a secret, also under a misspelt name: none is shown."""
ClientTable = Annotated[dict[str, ClientValue], BeforeValidator(_client_table)]
RegistryTable = Annotated[dict[str, ClientValue], BeforeValidator(_registry_table)]


def read_client_files(
    client: Mapping[str, Secret[Any]], section: str = "kafka.client"
) -> dict[str, Secret[Any]]:
    """Replace each setting `X.file` of a client by X, with the content of the file as its value.

    Parameters
    ----------
    client
        The settings of `kafka.client` or `registry.client`.
    section
        Which of both it is, for errors.

    Returns
    -------
    dict
        The settings as the client knows them.

    Raises
    ------
    ConfigError
        A file is missing or cannot be read, or both X and `X.file` are set.
    """
    values = dict(client)
    for key, secret in client.items():
        path, name = str(secret.get_secret_value()), f'{section}: "{key}"'
        if key in FILES_OF_LIBRDKAFKA or (key.endswith(LOCATION_SUFFIX) and path != SEARCHED):
            _refuse_unreadable(path, name)
        elif key.endswith(FILE_SUFFIX):
            target = key.removesuffix(FILE_SUFFIX)
            if target in client:
                raise ConfigError(f'{section}: both "{target}" and "{key}" are set; keep one of them')
            del values[key]
            values[target] = Secret(read_value(path, name))
    return values


def _refuse_unreadable(path: str, name: str) -> None:
    try:
        readable, exists = os.access(path, os.R_OK), Path(path).exists()
    except (OSError, ValueError):
        readable = exists = False
    if not readable:
        reason = "is not readable for this user" if exists else "does not exist"
        raise ConfigError(f"{name}: {shown_path(path)} {reason}")
