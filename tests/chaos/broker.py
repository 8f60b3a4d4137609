"""A broker that can be killed and started again on the same port and folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Self

import psutil

from pipeline.broker import guard
from pipeline.broker.launch import free_ports, log_file, prepare, start_failure
from pipeline.broker.ready import wait_until_ready
from pipeline.errors import BrokerError

SESSION = "broker.session.timeout.ms=2000\nbroker.heartbeat.interval.ms=500\n"
"""A node that was killed may not come back before its session is over: 9 s unless told otherwise."""


class Broker:
    """The embedded Kafka; it ends with the `with` block, and also when this process is killed inside.

    Parameters
    ----------
    folder
        Where it keeps its data; gone afterwards, unless it was killed last.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        [self._port] = free_ports(1)
        self._guard: subprocess.Popen[bytes] | None = None
        self.bootstrap = f"127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._guard is not None:
            self._guard.communicate()  # closes the pipe, and the guard ends the broker

    @property
    def running(self) -> bool:
        """Whether it was started, and not killed since."""
        return self._guard is not None

    def start(self) -> None:
        """Start it, and return when it answers."""
        launch = prepare(self._folder, self._port)
        with (self._folder / "server.properties").open("a") as properties:
            properties.write(SESSION)
        with log_file(self._folder).open("ab") as log:
            process = self._guard = subprocess.Popen(
                [sys.executable, "-P", guard.__file__, str(self._folder), json.dumps(launch.commands)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the program, which ends the broker when it is done
            )

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
