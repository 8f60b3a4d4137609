"""A broker that goes away in the middle, in good order or not, and comes back."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from pipeline.broker import embedded
from tests.kafka.harness import FORKS, Pipeline, in_one_go, invented_events, until


def broker(command: str, data: Path, *options: str) -> None:
    """Run `forks broker`, in a process of its own as a user does."""
    subprocess.run(
        [*FORKS, "broker", command, "--data", data, *options], check=True, timeout=120, capture_output=True
    )


def stopped(data: Path) -> None:
    """It is told to stop."""
    broker("stop", data)


def killed(data: Path) -> None:
    """It ends without a word, what it had not written out included."""
    process = _process(data)
    process.send_signal(signal.SIGKILL)
    process.wait(60.0)


def _process(data: Path) -> psutil.Process:
    running = embedded.status(data)
    assert running is not None
    return psutil.Process(running.pid)


@pytest.mark.parametrize("strike", [stopped, killed])
def test_a_broker_that_goes_away_and_comes_back_costs_nothing(
    strike: Callable[[Path], None], tmp_path: Path, free_port: int
) -> None:
    """The worker goes on by itself, through the one path that every fault takes."""
    data = tmp_path / "broker"
    broker("start", data, "--port", str(free_port))
    try:
        pipeline = Pipeline(f"127.0.0.1:{free_port}", "outage-", tmp_path)
        pipeline.environment = {"FORKS_WORKER__BATCH": "100"}
        events = invented_events(tmp_path, 6_000)
        pipeline.produce_events(events)
        with pipeline.worker() as worker:
            with pipeline.follow(pipeline.topics.outcomes) as follower:
                until(partial(follower.reached, 500), "the first outcomes", worker)
            strike(data)
            log = pipeline.log_of("worker")
            until(lambda: "_ALL_BROKERS_DOWN" in log.read_text(), "notice of the outage", worker)
            broker("start", data, "--port", str(free_port))
            with pipeline.follow(pipeline.topics.outcomes) as follower:
                until(partial(follower.reached, len(events)), "all outcomes", worker)
        predictions, outcomes = in_one_go(pipeline, events)
        assert [w.value for w in pipeline.read(pipeline.topics.predictions)] == predictions
        assert [w.value for w in pipeline.read(pipeline.topics.outcomes)] == outcomes
    finally:
        broker("stop", data)
