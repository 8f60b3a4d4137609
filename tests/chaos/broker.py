"""A broker that can be killed and started again on the same port and folder, and the controller beside it."""

from __future__ import annotations

import base64
import re
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import psutil

from pipeline.broker.guarded import start_guard
from pipeline.broker.launch import free_ports, log_file, prepare, start_failure
from pipeline.broker.ready import wait_until_ready
from pipeline.errors import BrokerError
from tests.integration.harness import until
from tests.support.cluster import PRODUCER_EXPIRATION

SESSION = 2.0
"""Seconds after which the controller takes a silent broker's partitions from it: 9 unless told otherwise."""
_FENCED = re.compile(rb"modifying the registration for broker 1: .*?\bfenced=(-?1)\b")
"""Logged by the controller: 1 where it takes the broker for gone, -1 where it is back."""


class Broker:
    """A cluster of one broker and one controller; both end with the `with` block, whatever happens inside.

    They are processes apart. A node that is both takes itself for the leader of its partitions still, for a
    moment after its start. Kafka 4.3.1 then calls transactions committed whose markers it has not written.
    A controller that lives on has noticed the death before the broker is back.

    Parameters
    ----------
    folder
        Where they keep their data; the broker's is gone afterwards, unless it was killed last.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._controller_folder = folder / "broker", folder / "controller"
        for each in (folder, self._folder, self._controller_folder):
            each.mkdir()
        self._port, self._controller_port = free_ports(2)
        self._cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._controller: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self.replication = 1
        self.bootstrap = f"127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        listeners = f"CONTROLLER://127.0.0.1:{self._controller_port}"
        roles = {"process.roles": "controller", "node.id": "2", "listeners": listeners}
        self._controller = self._launch(
            self._controller_folder, None, roles | {"advertised.listeners": listeners}
        )
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self._guard, self._controller):
            if process is not None:
                process.communicate()  # closes the pipe, and the guard ends what it guards

    def bootstrap_of(self, _worker: int) -> str:
        """Return the address at which a worker reaches it: the same for all."""
        return self.bootstrap

    @property
    def running(self) -> bool:
        """Whether it was started, and has not ended since."""
        return self._guard is not None

    def start(self) -> None:
        """Start it, once the controller has noticed that it was gone, and return when it answers."""
        until(self._missed, "the controller's notice that the broker was gone")
        listeners = f"PLAINTEXT://{self.bootstrap}"
        roles = {"process.roles": "broker", "listeners": listeners}
        process = self._guard = self._launch(self._folder, self._port, roles)

        def check_alive() -> None:
            if (code := process.poll()) is not None:
                raise BrokerError(start_failure(self._folder, code))

        wait_until_ready(self.bootstrap, check_alive)

    @property
    def process(self) -> psutil.Process:
        """The broker itself."""
        assert self._guard is not None, "start it first"
        [broker] = psutil.Process(self._guard.pid).children()
        return broker

    def kill(self) -> None:
        """SIGKILL it."""
        self.process.kill()
        self.wait()

    def wait(self) -> None:
        """Return when it has ended; the guard notices and ends, too."""
        assert self._guard is not None, "start it first"
        self._guard.wait(60.0)
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard = None

    def _missed(self) -> bool:
        """Whether the controller knows of no broker that is there."""
        words = _FENCED.findall(log_file(self._controller_folder).read_bytes())
        return not words or words[-1] == b"1"

    def _launch(self, folder: Path, port: int | None, roles: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a node under a guard."""
        launch = prepare(folder, port)
        settings = {
            **roles,
            "controller.quorum.voters": f"2@127.0.0.1:{self._controller_port}",
            "producer.id.expiration.ms": str(PRODUCER_EXPIRATION),
            "broker.session.timeout.ms": str(round(SESSION * 1000)),
            "broker.heartbeat.interval.ms": str(round(SESSION * 250)),
        }
        with (folder / "server.properties").open("a") as properties:  # what is said last counts
            properties.writelines(f"{name}={value}\n" for name, value in settings.items())
        cluster = "--cluster-id="
        commands = [
            [cluster + self._cluster if part.startswith(cluster) else part for part in command]
            for command in launch.commands
        ]
        with (folder / "logging.properties").open("a") as properties:
            properties.write("org.apache.kafka.controller.ClusterControlManager.level=INFO\n")
        with log_file(folder).open("ab") as log:
            return start_guard(folder, commands, log)
