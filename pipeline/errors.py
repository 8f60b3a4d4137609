"""The errors that a user can act on, and the exit codes of commands that end with them.

* ForksError (1)
    * ConfigError (2): a setting, option or configuration file is refused
    * BrokerError (3): Kafka cannot be reached, or went away
    * TopicError (4): topics are missing or not as the pipeline needs them
    * StateError (5): the records in the topics contradict one another, or belong to another configuration
    * DataError (6): an input file cannot be read, or has other contents than it should
    * FencedError (7): another worker runs under the same instance name and has replaced this one
    * AuthorizationError (8): the brokers deny a right
    * RegistryError (9): the schema registry does not answer
        * SchemaRefusedError (9): it refuses a schema that is to be registered
    * StorageError (10): a local folder cannot be written
"""

from __future__ import annotations


class ForksError(Exception):
    """Base of every error that a user can act on; its message says how."""

    exit_code = 1


class ConfigError(ForksError):
    """A setting, option or configuration file is refused."""

    exit_code = 2


class BrokerError(ForksError):
    """Kafka cannot be reached, or went away."""

    exit_code = 3


class TopicError(ForksError):
    """Topics are missing, or not as the pipeline needs them."""

    exit_code = 4


class StateError(ForksError):
    """The records in the topics contradict one another, or belong to another configuration."""

    exit_code = 5


class DataError(ForksError):
    """An input file cannot be read, or has other contents than it should."""

    exit_code = 6


class FencedError(ForksError):
    """Another worker runs under the same instance name and has replaced this one."""

    exit_code = 7


class AuthorizationError(ForksError):
    """The brokers deny a right."""

    exit_code = 8


class RegistryError(ForksError):
    """The schema registry does not answer. It says nothing about any message."""

    exit_code = 9


class SchemaRefusedError(RegistryError):
    """The schema registry refuses a schema that is to be registered, now and as long as nobody acts."""


class StorageError(ForksError):
    """A local folder cannot be written, or its disk is full."""

    exit_code = 10
