"""Real workers for the recovery benchmark: started, followed in their log and in a topic, and killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any, Final, Self

import msgspec
from confluent_kafka import TopicPartition

from pipeline.config.settings import Config
from pipeline.kafka.clients import groupless_consumer
from pipeline.sources.kuairec import Events
from pipeline.sources.replay import Replay

FORKS: Final = (sys.executable, "-c", "from pipeline.cli import main; main()")
TIMEOUT: Final = 180.0
"""Seconds within which what is waited for has to come."""


class Tail:
    """Counts the committed records of a topic of one partition as they come; use as a context manager."""

    def __init__(self, config: Config, topic: str) -> None:
        self.topic = topic
        self.count = 0
        self._consumer = groupless_consumer(config.kafka)
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def wait_for(self, count: int, worker: subprocess.Popen[bytes]) -> None:
        """Read until that many are there."""
        end = time.monotonic() + TIMEOUT
        while self.count < count:
            messages = self._consumer.consume(10_000, 0.02)
            self.count += sum(message.error() is None for message in messages)
            if worker.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the worker got no further than {self.count} of {count} in {self.topic}")


@contextmanager
def worker(file: Path, log: Path, instance: str | None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker with a configuration file; it is killed in the end."""
    name = ("--instance", instance) if instance else ()
    with log.open("wb") as stream:
        process = subprocess.Popen(
            (*FORKS, "run", "--json", "--config", str(file), *name), stdout=stream, stderr=stream
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def restart(
    config: Config, file: Path, instance: str | None, slices: tuple[Events, Events]
) -> dict[str, Any]:
    """Kill a worker that is idle, start it again beside new input, and time what follows.

    Parameters
    ----------
    config
        As in `file`.
    file
        The workers' configuration.
    instance
        Their name; without one they are strangers to each other.
    slices
        Two stretches of events that follow one another and on what is there.

    Returns
    -------
    dict
        Seconds from the kill to the assignment, then to the restored state, then to the first new
        prediction that a reader sees; and their sum.
    """
    topic = f"{config.kafka.prefix}predictions"
    log = file.with_suffix(".log")
    with Tail(config, topic) as predictions:
        with worker(file, log, instance) as first:
            _send(config, slices[0])
            predictions.wait_for(_predicted(log, first) + len(slices[0]), first)
        killed, there = time.time(), predictions.count
        with worker(file, log, instance) as second:
            _send(config, slices[1])
            predictions.wait_for(there + 1, second)
            seen = time.time()
            predictions.wait_for(there + len(slices[1]), second)
    moments = [killed, moment(log, "assigned"), moment(log, "restored"), seen]
    parts = [round(later - earlier, 2) for earlier, later in pairwise(moments)]
    return dict(zip(("to_assigned", "to_restored", "to_predicted"), parts, strict=True)) | {
        "seconds": round(seen - killed, 2)
    }


def _send(config: Config, events: Events) -> None:
    Replay(events, config.kafka).run(None, Event())


def lines_of(log: Path, event: str) -> list[dict[str, Any]]:
    """Return the lines of an event in a worker's log."""
    lines = [line for line in log.read_bytes().splitlines(keepends=True) if line.endswith(b"}\n")]
    return [line for line in map(msgspec.json.decode, lines) if line["event"] == event]


def _predicted(log: Path, process: subprocess.Popen[bytes]) -> int:
    """Wait until a worker has restored; how many predictions it found."""
    end = time.monotonic() + TIMEOUT
    while not (lines := lines_of(log, "restored")):
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"the worker did not restore; its log is:\n{log.read_text()}")
        time.sleep(0.05)
    found: int = lines[0]["predictions"]
    return found


def moment(log: Path, event: str) -> float:
    """Return the time of the first line of an event in a worker's log, in seconds since 1970."""
    return datetime.fromisoformat(lines_of(log, event)[0]["timestamp"]).timestamp()
