"""An embedded broker that ends with the block of code that it is for, in every case."""

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
from pipeline.broker.launch import DEFAULT_HEAP, log_file, prepare, start_failure
from pipeline.broker.ready import wait_until_ready
from pipeline.errors import BrokerError


@contextmanager
def temporary_broker(heap: str = DEFAULT_HEAP) -> Iterator[str]:
    """Run Apache Kafka in a temporary folder and give its address, ``127.0.0.1:port``.

    Broker and folder are gone when the block is left, and also when this process is killed inside it.

    Raises
    ------
    BrokerError
        A jar cannot be had, or the broker does not start.
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
                start_new_session=True,  # Ctrl-C is for the program, which ends the broker when it is done
            )

        def check_alive() -> None:
            if (code := process.poll()) is not None:
                raise BrokerError(start_failure(folder, code))

        try:
            wait_until_ready(launch.bootstrap, check_alive)
            yield launch.bootstrap
        finally:
            process.communicate()  # closes the pipe and waits
    finally:
        if folder.exists():  # the guard has not come to it
            shutil.rmtree(folder)
