"""Commands that read while their broker is restarted wait for it, and find what they would have found."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.chaos.broker import Broker
from tests.integration.harness import TIMEOUT, Pipeline, invented_events, until

EVENTS = 2_000
PROGRAM = """
import time
from functools import partial
from pathlib import Path
from pipeline.log import reader

read, begun = reader.LogReader._read, Path("begun")

def slow(self, topic, partition, offset):
    for messages in read(self, topic, partition, offset):
        if messages and not begun.exists():
            begun.touch()
            while not Path("struck").exists():
                time.sleep(0.05)
        yield messages

reader.LogReader._read = slow
reader.MAX_POLL_RECORDS = 20
reader.groupless_consumer = partial(reader.groupless_consumer, prefetch=1024)
from pipeline.cli import main
main()
"""
"""Waits at the first messages until the broker was struck; the client has not read up to the end by then."""
WAITING = "waiting for a broker"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker") / "broker") as broker:
        yield broker


@pytest.fixture(scope="module")
def pipeline(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    pipeline = Pipeline(broker.bootstrap, "restarted-", tmp_path_factory.mktemp("pipeline"))
    events = invented_events(pipeline.folder, EVENTS)
    pipeline.produce_events(events)
    pipeline.run_until({pipeline.topics.outcomes: len(events)})
    return pipeline


@contextmanager
def command(broker: Broker, pipeline: Pipeline, folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command, once it has begun to read."""
    options = ["--bootstrap", pipeline.kafka.bootstrap, "--prefix", pipeline.kafka.prefix]
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words, *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            text=True,
        )
    try:
        until((folder / "begun").exists, "the first message")
        yield process
    finally:
        process.kill()
        process.communicate()
        if not broker.running:
            broker.start()


def errors(folder: Path) -> str:
    return (folder / "errors").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("words", [["audit"], ["report"], ["inspect", "outcomes"]])
def test_a_broker_that_is_restarted_is_waited_for(
    broker: Broker, pipeline: Pipeline, tmp_path: Path, words: list[str]
) -> None:
    words = [*words, "--json", *(["--group", pipeline.kafka.group] if words == ["audit"] else [])]
    undisturbed = subprocess.run(
        [
            *(sys.executable, "-c", "from pipeline.cli import main; main()", *words),
            *("--bootstrap", pipeline.kafka.bootstrap, "--prefix", pipeline.kafka.prefix),
        ],
        capture_output=True,
        check=True,
        text=True,
    )
    with command(broker, pipeline, tmp_path, *words) as process:
        broker.kill()
        (tmp_path / "struck").touch()
        until(lambda: WAITING in errors(tmp_path), "notice of it", process)
        broker.start()
        output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert output == undisturbed.stdout
    assert pipeline.kafka.bootstrap in errors(tmp_path)


@pytest.mark.slow
def test_an_interrupt_ends_the_wait(broker: Broker, pipeline: Pipeline, tmp_path: Path) -> None:
    with command(broker, pipeline, tmp_path, "inspect", "outcomes", "--json") as process:
        broker.kill()
        (tmp_path / "struck").touch()
        until(lambda: WAITING in errors(tmp_path), "notice of it", process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130
