"""What it takes to run Apache Kafka in a folder: its files, its commands, and what its log says."""

from __future__ import annotations

import base64
import re
import socket
import uuid
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipeline.broker.jars import class_path
from pipeline.broker.java import find_java
from pipeline.broker.settings import LOGGING_PROPERTIES, server_properties
from pipeline.errors import ConfigError

DEFAULT_HEAP: Final = "512m"

MAIN_CLASS: Final = "kafka.Kafka"


@dataclass(frozen=True)
class Launch:
    """A broker that is ready to be started, by running the commands in the folder, one after the other."""

    folder: Path
    bootstrap: str
    commands: list[list[str]]


def log_file(folder: Path) -> Path:
    """Give the file that the broker's output goes to."""
    return folder / "broker.log"


def prepare(folder: Path, port: int | None = None, heap: str = DEFAULT_HEAP) -> Launch:
    """Write the broker's files into an existing folder and give the commands that start it.

    Parameters
    ----------
    folder : Path
        Where the broker keeps its data; what an earlier one left there is kept.
    port : int, optional
        The port to listen on, on 127.0.0.1; a free one by default.
    heap : str
        Size of the Java heap, such as ``512m`` or ``2g``.

    Raises
    ------
    ConfigError
        The heap is no size, the port is in use, or the jars cannot be kept.
    BrokerError
        A jar cannot be had.
    """
    if not re.fullmatch(r"[1-9]\d*[kmg]", heap, re.IGNORECASE):
        raise ConfigError(f"heap {heap!r} is not a size: write a number and k, m or g, as in 512m or 2g")
    if port is not None:
        check_free(port)
    broker_port, controller_port = free_ports(2)
    broker_port = port or broker_port
    (folder / "server.properties").write_text(server_properties(broker_port, controller_port))
    (folder / "logging.properties").write_text(LOGGING_PROPERTIES)
    java = [str(find_java()), "-cp", ":".join(map(str, class_path())), "-Djava.awt.headless=true"]
    # Java's second compiler pays only after many minutes: without it, the start and the first half million
    # records take half of the processors' time. The collector for large heaps costs a tenth more.
    java += ["-Djava.util.logging.config.file=logging.properties"]
    java += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    commands = [[*java, f"-Xmx{heap}", "-XX:+ExitOnOutOfMemoryError", MAIN_CLASS, "server.properties"]]
    if not (folder / "kafka" / "meta.properties").exists():
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        options = [f"--cluster-id={cluster}", "--config=server.properties", "--ignore-formatted"]
        commands.insert(0, [*java, "kafka.tools.StorageTool", "format", *options])
    return Launch(folder, f"127.0.0.1:{broker_port}", commands)


def free_ports(count: int) -> list[int]:
    """Give ports of 127.0.0.1 that are free, all different.

    Each has had a connection that was ended from its side. Until the system forgets that, a minute later,
    it gives the port only to servers that name it, as Java does, and to nobody who wants just any.
    """
    with ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        for server in servers:
            with socket.create_connection(server.getsockname()) as client:
                server.accept()[0].close()
                client.recv(1)  # so that this end is closed second
        return [server.getsockname()[1] for server in servers]


def check_free(port: int) -> None:
    """Raise ConfigError unless a server can listen on this port of 127.0.0.1."""
    with socket.socket() as server:
        # As Java does: connections of an earlier broker that are still closing do not hold the port.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigError(
                f"port {port} of 127.0.0.1 cannot be used: {error.strerror}. Name another one with --port, "
                "or leave it out for a free one."
            ) from error


def start_failure(folder: Path, exit_code: int) -> str:
    """Say that the broker ended while it was starting, with the end of its log."""
    log = log_file(folder)
    with log.open(errors="replace") as lines:
        tail = "".join(deque(lines, maxlen=15)).rstrip()
    return f"Apache Kafka ended while it was starting (exit code {exit_code}). The end of {log}:\n{tail}"
