"""An embedded broker that ends with a ``with`` block, even if the process is killed inside it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.broker import guard
from pipeline.broker.launch import log_file, prepare, start_failure
from pipeline.broker.ready import wait_until_ready
from pipeline.broker.settings import DEFAULT_HEAP
from pipeline.errors import BrokerError


@contextmanager
def temporary_broker(heap: str = DEFAULT_HEAP) -> Iterator[str]:
    """Run Apache Kafka in a temporary folder inside the block.

    At the end of the block the broker is ended and the folder deleted, also if this process is killed inside
    the block.

    Parameters
    ----------
    heap : str
        The size of the Java heap, such as ``512m`` or ``2g``.

    Yields
    ------
    str
        The address of the broker, ``127.0.0.1:port``.

    Raises
    ------
    ConfigError
        The heap is not a size, the cache folder for jars cannot be written, or a package of the extra
        `broker` is not installed.
    BrokerError
        A jar cannot be downloaded, or the broker does not start.
    """
    folder = Path(tempfile.mkdtemp(prefix="forks-broker-"))
    try:
        launch = prepare(folder, heap=heap)
        with log_file(folder).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", guard.__file__, str(folder), json.dumps(launch.commands)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C goes to this process alone, which then ends the broker
            )

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
