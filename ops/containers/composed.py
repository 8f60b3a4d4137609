"""The system of docker-compose.yml in an engine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ops.containers.engine import Engine
from ops.containers.images import ROOT
from ops.containers.process import TrialError

SERVICES: Final = ("kafka", "topics", "synth", "replay", "worker", "serve", "prometheus")
"""All but Grafana, of which there is no package to make a stand-in from."""
PROMETHEUS: Final = 9090
"""Its published port."""
TIMEOUT: Final = 240.0
ASK: Final = """
import sys, urllib.request as r
url, body = sys.argv[1:]
headers = {"content-type": "application/json"}
print(r.urlopen(r.Request(url, body.encode() or None, headers), timeout=30).read().decode())
"""
"""Asks a server, with the body of a request if there is one."""


class Composed:
    """Commands of Compose, and what its containers are like.

    Parameters
    ----------
    engine
        Where it runs.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def compose(self, *words: str | Path, **variables: str) -> str:
        """Run `docker compose` as from a checkout, and return what it wrote."""
        return self._engine.docker("compose", *words, folder=ROOT, timeout=1_200.0, **variables)

    def up(self, workers: int, followers: int = 1) -> float:
        """Start all that can be had, and return how many seconds it took until workers had started."""
        begin = time.monotonic()
        scales = [f"--scale=worker={workers}", f"--scale=serve={followers}"]
        ports = {"FORKS_SERVE_PORTS": "8080-8083"} if followers > 1 else {}
        self.compose("up", "--detach", *scales, *SERVICES, **ports)
        return time.monotonic() - begin

    def containers(self, service: str) -> list[dict[str, Any]]:
        """Return what the engine knows of a service's containers."""
        ids = self.compose("ps", "--all", "--quiet", service).split()
        found: list[dict[str, Any]] = json.loads(self._engine.docker("inspect", *ids)) if ids else []
        return found

    def port(self, service: str, index: int, port: int) -> int:
        """Return where a port of a service's container of this number, from 1, is published."""
        address = self.compose("port", "--index", str(index), service, str(port))
        return int(address.rpartition(":")[2])

    def forks(self, *words: str) -> str:
        """Run `forks` in the first worker's container."""
        return self.compose("exec", "--no-TTY", "worker", "forks", *words)

    def kill_process(self, container: dict[str, Any], text: str) -> None:
        """Kill the process of a container whose command line has a text, as a crash would."""
        processes = self._engine.docker("top", container["Id"], "-o", "pid,args").splitlines()
        [victim] = [line.split()[0] for line in processes if text in line and "tini " not in line]
        self._engine.inside("kill", "-KILL", victim)

    def log(self, container: dict[str, Any]) -> list[str]:
        """Return the lines that a container wrote."""
        driver = container["HostConfig"]["LogConfig"]
        assert driver["Type"] == "json-file"
        file = container["LogPath"]
        return [json.loads(line)["log"].rstrip("\n") for line in Path(file).read_text().splitlines()]

    def ask(self, port: int, path: str, body: str = "") -> str:
        """Return what the server at a published port answers."""
        return self._engine.inside(sys.executable, "-c", ASK, f"http://127.0.0.1:{port}{path}", body)

    def ask_within(self, container: str, port: int, path: str, body: str = "") -> str:
        """Return what a server of a container answers that publishes no port."""
        url = f"http://127.0.0.1:{port}{path}"
        return self._engine.docker("exec", container, "python", "-c", ASK, url, body)

    def query(self, text: str) -> list[float]:
        """Return the values that Prometheus has for a query."""
        answer = json.loads(self.ask(PROMETHEUS, f"/api/v1/query?query={quote(text)}"))
        return [float(each["value"][1]) for each in answer["data"]["result"]]


def wait(condition: Callable[[], bool], what: str, interval: float = 0.5) -> float:
    """Wait for a condition.

    Parameters
    ----------
    condition
        The condition.
    what
        What it is, for the error.
    interval
        Seconds from one look to the next.

    Returns
    -------
    float
        Seconds until it came true.

    Raises
    ------
    TrialError
        It does not come true in time.
    """
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > TIMEOUT:
            raise TrialError(f"{what}: not after {TIMEOUT:g} s")
        time.sleep(interval)
    return time.monotonic() - begin
