"""Store the log of a group as this release writes it: `python -m tests.upgrades.record tests/upgrades`.

Run it when a release is made, and commit the file: the tests of later releases go on from it.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import time
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pipeline.broker.temporary import temporary_broker
from tests.golden.scenarios import BEGIN, STEP, Scenario, invented
from tests.integration.harness import FORKS, TIMEOUT, Message, Pipeline, until
from tests.upgrades.stored_log import (
    StoredLog,
    StoredMessage,
    committed,
    digests,
    dump,
    inputs_done,
    pipeline_of,
)

STAGES: Final = (0, 300, 600, 800, 1_200)
"""Events at which something happens. A worker is stopped after each of the first two parts, with a snapshot,
and killed after the third; then the log is stored. The last part comes after that."""
PARTITIONS: Final = 2
JUMP: Final = 10**9
"""Milliseconds by which the clock of some interactions is ahead."""
QUIET: Final = 3.0
"""Seconds without a commit after which a worker has done all that it can."""
LIVE: Final = {"max_idle": "1h"}
"""With it, workers never take an input that pauses for one that has ended."""


def scenario() -> Scenario:
    """Return invented events with every kind of bad and late message, challengers, a policy and sharing."""
    given = invented(shared=True)
    settings: dict[str, Any] = given.settings | {
        "join": {"window": "30m", "early": "5m", "max_jump": "2d"},
        "sharing": {"interval": 20, "align": "30m"},
        "worker": {"batch": 200},
        "learner": {"budget": 30, "cycle": 40},
        "challengers": {
            "linear": {"learner": "arow"},
            "small": {"learner": "nogd", "budget": 20, "rank": 5},
            "squared": {"learner": "forks", "budget": 20, "cycle": 30, "loss": "squared"},
        },
    }
    return replace(given, settings=settings, partitions=PARTITIONS)


def inputs_between(given: Scenario, prefix: str, begin: int, end: int) -> list[Message]:
    """Return the messages from one moment to another, by numbers of events."""

    def at(timestamp: int) -> int:
        return (timestamp - BEGIN) % JUMP // STEP

    return [
        Message(prefix + each.topic, *each[1:]) for each in given.inputs if begin <= at(each.timestamp) < end
    ]


def environment_of(given: Scenario, *, live: bool) -> dict[str, str]:
    """Return the settings of workers; those that are live keep back what may depend on later messages."""
    join = given.settings["join"] | (LIVE if live else {})
    return replace(given, settings=given.settings | {"join": join}).environment()


def record(folder: Path) -> Path:
    """Run a group over a part of the events, store its log, and let it go on to the end."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True
    )
    release = f"{version('forks-stream')}-{commit.stdout.strip()}"
    prefix = f"upgrade-{release}-"
    given = scenario()
    *parts, rest = (inputs_between(given, prefix, begin, end) for begin, end in pairwise(STAGES))
    with temporary_broker() as bootstrap, TemporaryDirectory() as work:
        pipeline = pipeline_of(bootstrap, prefix, Path(work), PARTITIONS)
        pipeline.program = FORKS
        pipeline.environment = environment_of(given, live=True)
        for part in parts:
            pipeline.produce(part)
            run_until_idle(pipeline, kill=part is parts[-1])
        logs, offsets = dump(pipeline)
        pipeline.environment = environment_of(given, live=False)
        pipeline.produce(rest)
        with pipeline.worker() as worker:
            until(partial(inputs_done, pipeline), "the end of the inputs", worker)
        until(pipeline.settled, "the end of all transactions")
        stored = StoredLog(
            release,
            prefix,
            PARTITIONS,
            environment_of(given, live=False),
            logs,
            offsets,
            [StoredMessage(*message) for message in rest],
            digests(pipeline),
        )
    return stored.write(folder)


def run_until_idle(pipeline: Pipeline, *, kill: bool) -> None:
    """Run a worker until it has done all that it can; one that is killed writes no last snapshot."""
    start = committed(pipeline)
    worker = pipeline.start_worker()
    until(lambda: committed(pipeline) != start, "a commit", worker)
    before, now = start, committed(pipeline)
    while now != before:
        time.sleep(QUIET)
        before, now = now, committed(pipeline)
    worker.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
    assert worker.wait(TIMEOUT) == (-signal.SIGKILL if kill else 0)
    until(pipeline.settled, "the end of all transactions")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the file is to be written")
    file = record(parser.parse_args().folder)
    print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
