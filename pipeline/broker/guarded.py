"""A broker under a guard: it ends with the process that started it, however that ends."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL, Signals
from typing import IO

from pipeline.broker import guard
from pipeline.broker.launch import Launch, log_file, start_failure
from pipeline.broker.ready import wait_until_ready
from pipeline.errors import BrokerError


def start_guard(
    folder: Path, commands: Sequence[Sequence[str]], output: IO[bytes], end_signal: Signals = SIGKILL
) -> subprocess.Popen[bytes]:
    """Start a broker that ends when the process's standard input is closed; its folder is deleted then.

    Parameters
    ----------
    folder : Path
        The folder of the broker.
    commands : sequence of sequence of str
        Start it, one after another.
    output : file
        Gets what it prints.
    end_signal : Signals
        Ends it. A clean stop by SIGTERM is of no use for its data, which are deleted.

    Returns
    -------
    Popen
        The guard.
    """
    return subprocess.Popen(
        [sys.executable, "-P", guard.__file__, str(folder), json.dumps(commands), str(int(end_signal))],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C goes to this process alone, which then ends the broker
    )


@contextmanager
def guarded_broker(prepare: Callable[[Path], Launch], end_signal: Signals = SIGKILL) -> Iterator[str]:
    """Run a broker in a temporary folder inside the block.

    Parameters
    ----------
    prepare : callable
        Prepares a broker in a folder.
    end_signal : Signals
        Ends it.

    Yields
    ------
    str
        The address of the broker, ``127.0.0.1:port``.

    Raises
    ------
    BrokerError
        The broker does not start.
    """
    folder = Path(tempfile.mkdtemp(prefix="forks-broker-"))
    try:
        launch = prepare(folder)
        with log_file(folder).open("wb") as log:
            process = start_guard(folder, launch.commands, log, end_signal)

        def check_alive() -> None:
            if (code := process.poll()) is not None:
                raise BrokerError(start_failure(folder, code))

        try:
            wait_until_ready(launch.bootstrap, check_alive)
            yield launch.bootstrap
        finally:
            process.communicate()  # close the pipe, and wait for the guard to end
    finally:
        if folder.exists():  # the guard was not started, or a command failed
            shutil.rmtree(folder)
