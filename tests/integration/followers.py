"""Followers as processes, beside a pipeline's workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from pipeline.broker.launch import free_ports
from pipeline.tools import demo
from tests.integration.harness import TIMEOUT, Pipeline, until
from tests.support.forked import CommandProcess, ForkedCommand


def start(pipeline: Pipeline, port: int, *options: str) -> CommandProcess:
    kafka = pipeline.kafka
    given = ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group]
    arguments = ["serve", *given, "--address", str(port), *options]
    return ForkedCommand(arguments, pipeline.folder / f"{port}.log", dict(os.environ), pipeline.folder)


def answers(url: str) -> bool:
    """Whether a follower is ready."""
    return demo.answers(f"{url}/readyz", TIMEOUT)


@contextmanager
def follower(pipeline: Pipeline, *options: str) -> Iterator[str]:
    """A ready follower that is told to stop at the end and has to leave with 0."""
    [port] = free_ports(1)
    process, url = start(pipeline, port, *options), f"http://127.0.0.1:{port}"
    try:
        until(partial(answers, url), "the follower", process)
        yield url
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
    finally:
        process.kill()
        process.wait()
