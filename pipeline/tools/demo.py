"""Run the steps of the demo: create topics, send data, kill a worker and let it recover."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import NamedTuple
from uuid import uuid4

from pipeline.config.tree import Kafka
from pipeline.errors import ForksError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.follow import RecordCounter
from pipeline.kafka.topics import Topics, create
from pipeline.sources.kuairec import Events
from pipeline.sources.replay import Replay

FORKS = (sys.executable, "-c", "from pipeline.cli import main; main()")
STOP_TIMEOUT = 60.0
"""Seconds for a worker to stop."""
STALL_TIMEOUT = 120.0
"""Seconds without a new record after which the demo fails."""


class DemoRun(NamedTuple):
    """Measurements of the worker in the demo."""

    seconds: float
    """Seconds from the first prediction to the last outcome, including kill and recovery."""
    killed_at: int
    """Number of outcomes that were committed when the worker was killed."""
    recovery_s: float
    """Seconds from the kill to the next new prediction."""


def demo_kafka(bootstrap: str) -> Kafka:
    """Return the connection of a demo, with a unique prefix of topics and group."""
    prefix = f"demo-{uuid4().hex[:6]}-"
    return Kafka(bootstrap=bootstrap, prefix=prefix, group=f"{prefix}group")


def fill_topics(events: Events, kafka: Kafka, progress: Callable[[int], None]) -> None:
    """Create the topics and send all interactions and labels."""
    create(Admin(kafka), Topics(kafka.prefix), partitions=1, replication=1)
    Replay(events, kafka).run(None, Event(), progress)


def consume(
    kafka: Kafka,
    events: int,
    tables: Mapping[str, Path],
    log: Path,
    *,
    notify: Callable[[str], None],
    progress: Callable[[int], None],
) -> DemoRun:
    """Run a worker on all messages, kill it in the middle, and start it again.

    Parameters
    ----------
    kafka
        Connection of `demo_kafka`, with filled topics.
    events
        Number of events in the topics.
    tables
        Tables of the worker, by `features` setting.
    log
        File for the worker's log.
    notify
        Function to call with a text on each step.
    progress
        Function to call with the number of committed outcomes.

    Returns
    -------
    DemoRun
        Measurements of the worker.

    Raises
    ------
    ForksError
        If the worker ends by itself, or writes no record for `STALL_TIMEOUT` seconds.
    """
    topics = Topics(kafka.prefix)
    with (
        RecordCounter(kafka, topics.predictions) as predictions,
        RecordCounter(kafka, topics.outcomes) as outcomes,
    ):
        with _worker(kafka, tables, log) as worker:
            _wait_for_records(predictions, 1, worker, log, lambda _: None)
            begin = time.monotonic()
            killed_at = _wait_for_records(outcomes, events // 2, worker, log, progress)
            worker.send_signal(signal.SIGKILL)
            worker.wait()
        killed = time.monotonic()
        while predictions.poll():
            pass
        notify(f"kill -9 after {killed_at:,} outcomes; the same worker starts again")
        with _worker(kafka, tables, log) as worker:
            _wait_for_records(predictions, min(predictions.count + 1, events), worker, log, lambda _: None)
            recovery = time.monotonic() - killed
            notify(f"recovered: the next prediction was committed {recovery:.1f} s after the kill")
            _wait_for_records(outcomes, events, worker, log, progress)
            seconds = time.monotonic() - begin
            worker.send_signal(signal.SIGTERM)
            worker.wait(STOP_TIMEOUT)
    return DemoRun(seconds, killed_at, recovery)


@contextmanager
def _worker(kafka: Kafka, tables: Mapping[str, Path], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    options = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group)
    features = {f"FORKS_FEATURES__{name.upper()}": str(path) for name, path in tables.items()}
    with log.open("ab") as file:
        process = subprocess.Popen(
            (*FORKS, "run", *options, "--instance", "demo"),
            stdout=file,
            stderr=file,
            env=os.environ | features,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait_for_records(
    counter: RecordCounter,
    count: int,
    worker: subprocess.Popen[bytes],
    log: Path,
    progress: Callable[[int], None],
) -> int:
    """Wait until a topic has that many records, and return their number."""
    last = time.monotonic()
    while counter.count < count:
        if counter.poll():
            last = time.monotonic()
            progress(counter.count)
        ended = worker.poll()
        if ended is not None or time.monotonic() - last > STALL_TIMEOUT:
            problem = "makes no progress" if ended is None else f"ended with exit code {ended}"
            raise ForksError(
                f"the worker {problem} at {counter.count} of {count} records in {counter.topic}. "
                "Its log ends:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-20:])
            )
    return counter.count
