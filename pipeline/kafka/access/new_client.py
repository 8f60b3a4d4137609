"""Make clients of librdkafka, which checks their settings, and keep its own log lines off standard error."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from pipeline.config.settings import Kafka
from pipeline.errors import ConfigError
from pipeline.truncate import shown

PYTHON_ONLY: Final = frozenset({"logger", "default.topic.config", "on_delivery", "on_commit"})
"""Settings that take objects of Python, as all that end with `_cb` do."""
UNUSABLE: Final = re.compile("[\0\ud800-\udfff]")
"""Characters that end a text in C, or have no form in UTF-8."""
SHORTEST_MASKED: Final = 4
"""Characters of a value that is masked also where it has no quotes, at least."""

LIBRDKAFKA_LOGGER: Final = logging.getLogger("librdkafka")
"""Where librdkafka's own log lines go: without it, to standard error. It logs every attempt to connect, and
errors that are raised or reported anyway, so the level is high."""
LIBRDKAFKA_LOGGER.setLevel(logging.CRITICAL + 1)

Client = TypeVar("Client")


def client_settings(kafka: Kafka) -> dict[str, Any]:
    """Return the settings of every client, with the secrets among them: only to make clients.

    Raises
    ------
    ConfigError
        A setting of `kafka.client` cannot be set there.
    """
    client = {name: value.get_secret_value() for name, value in kafka.client.items()}
    refuse_unusable(client)
    return {
        "bootstrap.servers": kafka.bootstrap,
        "reconnect.backoff.ms": 20,  # a client may also wait half of it before its first connection
        **client,
    }


def new_client(make: Callable[..., Client], settings: Mapping[str, Any]) -> Client:
    """Make a client.

    Parameters
    ----------
    make
        Class of the client.
    settings
        Settings of librdkafka.

    Returns
    -------
    Client
        The client.

    Raises
    ------
    ConfigError
        A setting is unknown, or its value is refused. The error shows no value.
    """
    try:
        return make(dict(settings), logger=LIBRDKAFKA_LOGGER)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._INVALID_ARG:
            raise
        reason = masked(error.args[0].str().strip(), settings)
    # Raised here, so that no error that holds a value is its context.
    raise ConfigError(f"the settings of librdkafka, see [kafka.client], are refused: {reason}")


def masked(text: str, settings: Mapping[str, Any]) -> str:
    """Mask values in a text of librdkafka.

    Parameters
    ----------
    text
        Text that may hold a value.
    settings
        Settings by name.

    Examples
    --------
    >>> masked('Invalid value "abc" for configuration property "debug"', {"debug": "abc"})
    'Invalid value "***" for configuration property "debug"'
    """
    values = {str(value) for value in settings.values() if isinstance(value, str | int | float)}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(f'"{value}"', '"***"')
        if len(value) >= SHORTEST_MASKED:
            text = text.replace(value, "***")
    return text


def refuse_unusable(client: Mapping[str, Any]) -> None:
    """Raise an error for a setting that librdkafka would not get as it is.

    Parameters
    ----------
    client
        The settings of `kafka.client`, revealed.

    Raises
    ------
    ConfigError
        Naming the setting.
    """
    for name, value in client.items():
        if name in PYTHON_ONLY or name.endswith("_cb"):
            raise ConfigError(f'kafka.client: "{name}" takes an object of Python, so only code can set it')
        if UNUSABLE.search(name + str(value)):
            raise ConfigError(f"kafka.client: {shown(name)} has a null character or half a surrogate pair")
