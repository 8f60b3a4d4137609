"""Real followers for benchmarks: `forks serve` as a process of its own."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import psutil

from bench.deployment import Deployment
from bench.recovery_worker import FORKS
from pipeline.broker.launch import free_ports
from pipeline.tools.demo import answers

READY_TIMEOUT: Final = 180.0
"""Seconds within which a follower has to be ready."""


class RunningFollower(NamedTuple):
    """A follower that was started."""

    url: str
    process: psutil.Process


@contextmanager
def follower(deployment: Deployment, *options: str) -> Iterator[RunningFollower]:
    """Run `forks serve` for a deployment; it is ready inside the block, and killed in the end.

    Parameters
    ----------
    deployment
        What is followed.
    options
        Further ones of the command.

    Raises
    ------
    SystemExit
        It has ended, or is not ready in time.
    """
    [port] = free_ports(1)
    log, url = deployment.file.with_suffix(".serve.log"), f"http://127.0.0.1:{port}"
    arguments = ("serve", "--json", "--config", str(deployment.file), "--address", str(port), *options)
    with log.open("wb") as stream:
        process = subprocess.Popen((*FORKS, *arguments), stdout=stream, stderr=stream)
    try:
        end = time.monotonic() + READY_TIMEOUT
        while not _ready(url):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the follower is not ready; its log is:\n{log.read_text()}")
            time.sleep(0.05)
        yield RunningFollower(url, psutil.Process(process.pid))
    finally:
        process.kill()
        process.wait()


def _ready(url: str) -> bool:
    return answers(f"{url}/readyz", 1.0)
