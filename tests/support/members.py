"""Members of a crew, for its tests: they run in processes of their own."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

from pipeline.cli.signals import stop_on_signals
from pipeline.worker.supervisor import RegisterStop, Supervisor


def _note(folder: Path, number: int) -> None:
    """Leave the process's number in a file, which is whole when it has its name."""
    unfinished = folder / f"unfinished-{number}"
    unfinished.write_text(str(os.getpid()))
    unfinished.rename(folder / f"begun-{number}")


def obedient(folder: Path, number: int, register_stop: RegisterStop) -> None:
    """Leave a file with the process's number, wait for the word to stop, and leave another one."""
    stopped = threading.Event()
    register_stop(stopped.set)
    _note(folder, number)
    stopped.wait()
    (folder / f"done-{number}").touch()


def failing(folder: Path, number: int, register_stop: RegisterStop) -> None:
    """Fail if it is number 1, once number 0 is there."""
    if number == 1:
        while not (folder / "begun-0").exists():
            time.sleep(0.01)
        sys.exit(5)
    obedient(folder, number, register_stop)


def killed(folder: Path, number: int, register_stop: RegisterStop) -> None:
    """End by a signal if it is number 1, once number 0 is there."""
    if number == 1:
        while not (folder / "begun-0").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    obedient(folder, number, register_stop)


def stubborn(folder: Path, number: int, register_stop: RegisterStop) -> None:
    """Leave a file when told to stop, and do not stop."""
    register_stop((folder / f"told-{number}").touch)
    _note(folder, number)
    threading.Event().wait()


def main() -> None:
    """Run a supervisor of two members, whose kind and folder the command line names, until a signal comes."""
    supervisor = Supervisor(
        partial({"obedient": obedient, "stubborn": stubborn}[sys.argv[1]], Path(sys.argv[2])), 2
    )
    with stop_on_signals(supervisor.stop):
        sys.exit(supervisor.run())
