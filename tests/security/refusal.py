"""Run a command that has to be refused, and note what it says."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.broker.launch import free_ports
from tests.support.forked import CommandProcess, ForkedCommand

MAX_SECONDS = 10.0
"""Seconds within which each refusal comes on a quiet machine."""
TIMEOUT = 120.0
"""Seconds after which a command is taken to be in an endless loop."""
FOLLOWER_PORT = free_ports(1)[0]
"""Where a follower answers."""
ERROR = re.compile(r"^error(?: in worker \d+)?: (.*)$", re.MULTILINE)


class Refusal(NamedTuple):
    """What came of a command."""

    case: str
    """What is wrong."""
    exit_code: int
    seconds: float
    message: str
    """The first line of the error, without addresses and folders; the whole output if there is none."""


class Endpoint(NamedTuple):
    """How a command reaches a cluster."""

    settings: Mapping[str, Any]
    prefix: str = ""

    def environment(self) -> dict[str, str]:
        """Return the variables that say so."""
        client = dict(self.settings)
        return {
            "FORKS_KAFKA__BOOTSTRAP": client.pop("bootstrap.servers"),
            "FORKS_KAFKA__CLIENT": json.dumps(client),
            "FORKS_KAFKA__PREFIX": self.prefix,
            "FORKS_KAFKA__GROUP": f"{self.prefix}forks",
            "FORKS_SERVE__ADDRESS": str(FOLLOWER_PORT),
        }


def start(arguments: Sequence[str], cluster: Endpoint, log: Path) -> CommandProcess:
    """Start a command whose output goes to a file."""
    log.unlink(missing_ok=True)
    environment = os.environ | cluster.environment() | {"NO_COLOR": "1"}
    return ForkedCommand(arguments, log, environment, Path.cwd())


def outcome(case: str, process: CommandProcess, since: float, cluster: Endpoint, log: Path) -> Refusal:
    """Wait for a command's end."""
    try:
        code = process.wait(TIMEOUT)
    finally:
        process.kill()
        process.wait()
    seconds = time.monotonic() - since
    text = log.read_text(errors="replace")
    found = ERROR.findall(text)
    return Refusal(case, code, seconds, _plain(found[-1], cluster) if found else text)


def refused(case: str, arguments: Sequence[str], cluster: Endpoint, folder: Path) -> Refusal:
    """Run a command to its end."""
    log, begin = folder / "output.log", time.monotonic()
    return outcome(case, start(arguments, cluster, log), begin, cluster, log)


def _plain(message: str, cluster: Endpoint) -> str:
    """Leave out what differs from run to run."""
    servers = str(cluster.settings["bootstrap.servers"])
    message = message.replace(servers, "BROKERS").replace(cluster.prefix or "\0", "")
    for server in servers.split(","):
        message = message.replace(server, "BROKER")
    return message.split(". Grant it with")[0]
