"""What can go wrong, and with which exit code a command then ends.

* ForksError
    * ConfigError (2): a setting, option or file is not as it has to be
    * BrokerError (3): no Kafka where one was expected, or it went away
    * TopicError (4): topics are missing or not as the pipeline needs them
    * StateError (5): what the topics hold does not fit together, or belongs to another configuration
    * DataError (6): an input file is not what it should be
    * FencedError (7): another worker has taken over this one's identity
"""

from __future__ import annotations


class ForksError(Exception):
    """Base of every error that a user can act on; its text says how."""

    exit_code = 1


class ConfigError(ForksError):
    """A setting, option or configuration file is not as it has to be."""

    exit_code = 2


class BrokerError(ForksError):
    """No Kafka where one was expected, or it went away."""

    exit_code = 3


class TopicError(ForksError):
    """Topics are missing, or not as the pipeline needs them."""

    exit_code = 4


class StateError(ForksError):
    """What the topics hold does not fit together, or belongs to another configuration."""

    exit_code = 5


class DataError(ForksError):
    """An input file is not what it should be."""

    exit_code = 6


class FencedError(ForksError):
    """Another worker runs under the same instance name and has taken over."""

    exit_code = 7
