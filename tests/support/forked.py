"""Commands of `forks` as processes that are forked from one which has imported everything.

An import of all that a worker needs takes a second of processor time. Tests start hundreds of commands.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pipeline.cli import main

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.support.preloaded"])


class CommandProcess(Protocol):
    """What tests ask of a process, whether it was forked or started anew; see `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int, /) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class ForkedCommand:
    """A command that runs; it has what `subprocess.Popen` has.

    Parameters
    ----------
    arguments
        Those of the command line, without the program.
    log
        The file to which it appends what it prints.
    environment
        All its variables.
    folder
        Where it works.
    """

    def __init__(
        self, arguments: Sequence[str], log: Path, environment: Mapping[str, str], folder: Path
    ) -> None:
        log.touch()
        self._process = _CONTEXT.Process(
            target=_run, args=(list(arguments), str(log), dict(environment), str(folder))
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and return the exit code."""
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(["forks"], timeout or 0.0)
        return code

    def send_signal(self, sig: int, /) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, sig)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()


def _run(arguments: list[str], log: str, environment: dict[str, str], folder: str) -> None:
    """Run the command in the new process."""
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["forks", *arguments]
    main()
