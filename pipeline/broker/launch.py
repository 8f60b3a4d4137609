"""Prepare Apache Kafka to run in a folder: its files, commands, ports and log."""

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

from pipeline.broker.jars import cache_folder, class_path
from pipeline.broker.java import JavaProgram, find_java
from pipeline.broker.settings import DEFAULT_HEAP, LOGGING_PROPERTIES, server_properties
from pipeline.errors import ConfigError

MAIN_CLASS: Final = "kafka.Kafka"


@dataclass(frozen=True)
class Launch:
    """A broker that is ready to be started.

    Attributes
    ----------
    folder : Path
        The folder to run the commands in.
    bootstrap : str
        The address that the broker will have, ``host:port``.
    commands : list of list of str
        The commands to run one after another. The last one is the broker.
    """

    folder: Path
    bootstrap: str
    commands: list[list[str]]


def log_file(folder: Path) -> Path:
    """Return the file for the broker's output."""
    return folder / "broker.log"


def java_program() -> JavaProgram:
    """Return the Java that runs brokers, and how.

    Raises
    ------
    ConfigError
        No suitable Java is installed, the cache folder for jars cannot be written, or a package of the extra
        `broker` is not installed.
    BrokerError
        A jar cannot be downloaded.
    """
    # Java's second compiler pays off only after many minutes. Without it, the start and the first half
    # million records take half the CPU time. With G1, the collector for large heaps, they take a tenth more.
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true"]
    options += ["-Djava.util.logging.config.file=logging.properties"]
    return JavaProgram(find_java(), class_path(), options, cache_folder() / "classes")


def prepare(
    folder: Path, port: int | None = None, heap: str = DEFAULT_HEAP, *, make_archive: bool = False
) -> Launch:
    """Write the broker's files into an existing folder, and build the commands that start it.

    Parameters
    ----------
    folder : Path
        The folder for the broker's data. Data of an earlier broker stay.
    port : int, optional
        The port of 127.0.0.1 to listen on; a free one by default.
    heap : str
        The size of the Java heap, such as ``512m`` or ``2g``.
    make_archive : bool
        Whether Java is to write the archive of its classes when the broker ends.

    Returns
    -------
    Launch
        The commands, and the address that the broker will have.

    Raises
    ------
    ConfigError
        The heap is not a size, the port is in use, the cache folder for jars cannot be written, or a package
        of the extra `broker` is not installed.
    BrokerError
        A jar cannot be downloaded.
    """
    if not re.fullmatch(r"[1-9]\d*[kmg]", heap, re.IGNORECASE):
        raise ConfigError(f"heap {heap!r} is not a size: write a number and k, m or g, as in 512m or 2g")
    if port is not None:
        check_free(port)
    broker_port, controller_port = free_ports(2)
    broker_port = port or broker_port
    (folder / "server.properties").write_text(server_properties(broker_port, controller_port))
    (folder / "logging.properties").write_text(LOGGING_PROPERTIES)
    program = java_program()
    java = program.command()
    broker = program.command(writing=True) if make_archive else java
    commands = [[*broker, f"-Xmx{heap}", "-XX:+ExitOnOutOfMemoryError", MAIN_CLASS, "server.properties"]]
    if not (folder / "kafka" / "meta.properties").exists():
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        options = [f"--cluster-id={cluster}", "--config=server.properties", "--ignore-formatted"]
        commands.insert(0, [*java, "kafka.tools.StorageTool", "format", *options])
    return Launch(folder, f"127.0.0.1:{broker_port}", commands)


def free_ports(count: int) -> list[int]:
    """Find free ports of 127.0.0.1, all different, and reserve them for about a minute.

    Each port has had a connection that was closed from its side first, and so is in the state TIME_WAIT. The
    system then gives the port to a server that asks for it with ``SO_REUSEADDR``, as Java does, but not to a
    program that asks for any free port.

    Parameters
    ----------
    count : int
        How many ports.

    Returns
    -------
    list of int
        The ports.
    """
    with ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        for server in servers:
            with socket.create_connection(server.getsockname()) as client:
                server.accept()[0].close()
                client.recv(1)  # wait for the close, so that the client closes second
        return [server.getsockname()[1] for server in servers]


def check_free(port: int) -> None:
    """Raise ConfigError unless a server can listen on this port of 127.0.0.1."""
    with socket.socket() as server:
        # As Java does: connections of an earlier broker in TIME_WAIT do not keep the port in use.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigError(
                f"port {port} of 127.0.0.1 cannot be used: {error.strerror}. Name another one with --port, "
                "or leave it out for a free one."
            ) from error


def start_failure(folder: Path, exit_code: int) -> str:
    """Write the message that the broker ended while it was starting, with the end of its log."""
    log = log_file(folder)
    with log.open(errors="replace") as lines:
        tail = "".join(deque(lines, maxlen=15)).rstrip()
    return f"Apache Kafka ended while it was starting (exit code {exit_code}). The end of {log}:\n{tail}"
