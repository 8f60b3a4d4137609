"""Choose the broker: the user's own, one in Docker, or the embedded one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from pipeline.broker.settings import BOOTSTRAP_VARIABLE
from pipeline.broker.temporary import temporary_broker
from pipeline.config.value_files import read_variable
from pipeline.extras import install_hint, is_installed

log = structlog.get_logger()

PROBE: Final = """
from testcontainers.core.config import ConnectionMode
from testcontainers.core.docker_client import DockerClient

docker = DockerClient()
docker.client.ping()
if docker.get_connection_mode() != ConnectionMode.docker_host:
    raise SystemExit("inside a container, the address of another one is not known before its start")
"""


@contextmanager
def available_broker() -> Iterator[str]:
    """Provide a Kafka inside the block.

    The first that is possible of:

    1. the one that ``FORKS_KAFKA__BOOTSTRAP`` names, or the file of ``FORKS_KAFKA__BOOTSTRAP_FILE``,
    2. a container, if testcontainers is installed and a Docker engine answers,
    3. an embedded broker.

    A container or an embedded broker ends with the block.

    Yields
    ------
    str
        The address of the broker, ``host:port``.

    Raises
    ------
    BrokerError
        The broker does not start.
    ConfigError
        A package of the extra `broker` is not installed, or the file of the address cannot be read.
    """
    if own := read_variable(BOOTSTRAP_VARIABLE):
        yield own
    elif docker_answers():
        from pipeline.broker.container import ApacheKafka  # noqa: PLC0415 - an optional dependency

        with ApacheKafka() as container:
            yield container.bootstrap
    else:
        with temporary_broker() as bootstrap:
            yield bootstrap


def docker_answers() -> bool:
    """Tell whether testcontainers can start a container, and log why if not.

    The attempt runs in a process of its own: it can be ended if the engine hangs, and its end closes the
    sockets that docker-py leaves open after a failure.
    """
    if not is_installed("testcontainers"):
        log.info("Docker is not used: testcontainers is not installed", advice=install_hint("testcontainers"))
        return False
    try:
        answer = subprocess.run(
            [sys.executable, "-c", PROBE], capture_output=True, text=True, check=False, timeout=30
        )
    except subprocess.TimeoutExpired:
        reason = "the Docker engine does not answer"
    else:
        if answer.returncode == 0:
            return True
        reason = answer.stderr.strip().splitlines()[-1]
    log.info(
        "no Docker engine is at hand, and none is needed: using the embedded broker",
        reason=reason.partition(":")[0],
    )
    return False
