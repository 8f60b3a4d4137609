"""The settings of a single Kafka node, for the embedded broker and for the container."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

VERSION: Final = "4.3.1"

BOOTSTRAP_VARIABLE: Final = "FORKS_KAFKA__BOOTSTRAP"

DEFAULT_DATA: Final = Path("forks-data/broker")

DEFAULT_HEAP: Final = "512m"

OWN_BROKER_HINT: Final = (
    f"To use a Kafka of your own instead, set {BOOTSTRAP_VARIABLE}=host:port or pass --bootstrap."
)

CONTAINER_CONTROLLER_PORT: Final = 9093  # not published, so it need not be free outside the container

SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        # By default the internal topics need three brokers.
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # The default of 50 partitions each costs files and start-up time.
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.num.partitions": "4",
        # By default the first member of a group waits three seconds for others.
        "group.initial.rebalance.delay.ms": "0",
        # By default every ten seconds. Until then, the open transaction of a dead worker hides later records.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        # Committed offsets lead to the pipeline's state. By default they expire after a week without workers.
        "offsets.retention.minutes": "525600",
        # By default a misspelt topic is created, with one partition.
        "auto.create.topics.enable": "false",
    }
)


def server_properties(port: int, controller_port: int) -> str:
    """Write the text of the embedded broker's ``server.properties``.

    Paths are relative to the data folder, in which the broker runs. Kafka reads the file as Latin-1, and
    would not find an absolute path with other letters in it.

    Parameters
    ----------
    port : int
        The port of 127.0.0.1 for clients.
    controller_port : int
        The port of 127.0.0.1 for the controller.

    Returns
    -------
    str
        The text, one setting a line.
    """
    settings = {
        **SETTINGS,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "log.dirs": "kafka",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def container_environment(host: str, port: int) -> dict[str, str]:
    """Build the environment with which the ``apache/kafka`` image has the same settings.

    Parameters
    ----------
    host : str
        The host name for clients outside the container.
    port : int
        The port for clients, the same inside and outside the container.

    Returns
    -------
    dict of str to str
        The variables and their values.
    """
    settings = {
        **SETTINGS,
        "listeners": f"PLAINTEXT://0.0.0.0:{port},CONTROLLER://127.0.0.1:{CONTAINER_CONTROLLER_PORT}",
        "advertised.listeners": f"PLAINTEXT://{host}:{port}",
        "controller.quorum.voters": f"1@127.0.0.1:{CONTAINER_CONTROLLER_PORT}",
    }
    return {environment_name(name): value for name, value in settings.items()}


def environment_name(setting: str) -> str:
    """Return the environment variable for a setting of the ``apache/kafka`` image.

    >>> environment_name("transaction.state.log.min.isr")
    'KAFKA_TRANSACTION_STATE_LOG_MIN_ISR'
    """
    return "KAFKA_" + setting.upper().replace(".", "_")


LOGGING_PROPERTIES: Final = """\
handlers=java.util.logging.ConsoleHandler
.level=WARNING
java.util.logging.SimpleFormatter.format=%1$tF %1$tT %4$s %3$s: %5$s%6$s%n
"""
