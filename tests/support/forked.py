"""Commands of `forks` as processes that are forked from one which has imported everything.

An import of all that a worker needs takes a second of processor time. Tests start hundreds of commands.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pipeline.cli import main

TIMEOUT = 300.0
"""Seconds for a command to end, also on a busy machine."""

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
    errors
        The file to which it appends what it prints as errors; the same by default.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        environment: Mapping[str, str],
        folder: Path,
        errors: Path | None = None,
    ) -> None:
        outputs = (str(log), str(errors or log))
        log.touch()
        self._process = _CONTEXT.Process(
            target=_run, args=(list(arguments), outputs, dict(environment), str(folder))
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


def run_command(
    *arguments: str, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and return its exit code and what it printed.

    Parameters
    ----------
    *arguments
        Those of the command line, without the program.
    environment
        Variables beside those of this process.
    folder
        Where it works; that of this process by default.
    """
    with tempfile.TemporaryDirectory() as name:
        output, errors = Path(name) / "output", Path(name) / "errors"
        variables = os.environ | dict(environment or {})
        process = ForkedCommand(arguments, output, variables, folder or Path.cwd(), errors)
        try:
            code = process.wait(TIMEOUT)
        finally:
            process.kill()
            process.wait()
        return subprocess.CompletedProcess(arguments, code, output.read_text(), errors.read_text())


def _run(arguments: list[str], outputs: Sequence[str], environment: dict[str, str], folder: str) -> None:
    """Run the command in the new process."""
    for descriptor, file in zip((1, 2), outputs, strict=True):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["forks", *arguments]
    main()
