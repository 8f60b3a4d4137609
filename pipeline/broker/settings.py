"""The settings of a single Kafka node, said once for the embedded broker and for the container."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

VERSION: Final = "4.3.1"

BOOTSTRAP_VARIABLE: Final = "FORKS_KAFKA__BOOTSTRAP"

CONTAINER_CONTROLLER_PORT: Final = 9093  # never left the container, so that it need not be free outside

SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        # The internal topics ask for three brokers by default, and a single node has one.
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # 50 partitions each by default: files and start-up time that one node has no use for.
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.num.partitions": "4",
        # A group's first member would otherwise wait three seconds for others to come.
        "group.initial.rebalance.delay.ms": "0",
        # Every ten seconds by default: a dead worker's records would hide others for that much longer.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        # The committed offsets lead to the pipeline's state: a week without a worker must not lose them.
        "offsets.retention.minutes": "525600",
        # A misspelt topic is an error, not a new topic with one partition.
        "auto.create.topics.enable": "false",
    }
)


def server_properties(port: int, controller_port: int) -> str:
    """Give the text of the embedded broker's ``server.properties``.

    Paths are relative to the data folder, in which the broker runs: the file is read as Latin-1, so that an
    absolute path with other letters in it would not be found.
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
    """Give the environment that makes the ``apache/kafka`` image the same broker.

    Parameters
    ----------
    host : str
        The host by which clients outside the container reach it.
    port : int
        The port that it listens on, the same inside and outside.
    """
    settings = {
        **SETTINGS,
        "listeners": f"PLAINTEXT://0.0.0.0:{port},CONTROLLER://127.0.0.1:{CONTAINER_CONTROLLER_PORT}",
        "advertised.listeners": f"PLAINTEXT://{host}:{port}",
        "controller.quorum.voters": f"1@127.0.0.1:{CONTAINER_CONTROLLER_PORT}",
    }
    return {environment_name(name): value for name, value in settings.items()}


def environment_name(setting: str) -> str:
    """Give the variable by which the ``apache/kafka`` image takes a setting.

    >>> environment_name("transaction.state.log.min.isr")
    'KAFKA_TRANSACTION_STATE_LOG_MIN_ISR'
    """
    return "KAFKA_" + setting.upper().replace(".", "_")


LOGGING_PROPERTIES: Final = """\
handlers=java.util.logging.ConsoleHandler
.level=WARNING
java.util.logging.SimpleFormatter.format=%1$tF %1$tT %4$s %3$s: %5$s%6$s%n
"""
