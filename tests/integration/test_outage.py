"""A broker that goes away in the middle, for one reason or another, and comes back."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.chaos.broker import Broker
from tests.integration.harness import (
    Feed,
    Pipeline,
    assert_as_in_one_go,
    invented_events,
    stop_in_a_transaction,
    until,
)

ROOM = 1 << 16
"""Bytes beyond which no file grows on the full disk: a limit of the process, so that none need be filled."""


def killed(broker: psutil.Process) -> None:
    """It ends without a word, what it had not written out included."""
    broker.kill()


def full_disk(broker: psutil.Process) -> None:
    """It fails to write, whatever it was about to, and gives up."""
    broker.rlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))


def starts_over(pipeline: Pipeline) -> int:
    """How often the worker has given up its connections for new ones."""
    return pipeline.log_of("worker").read_text().count("starting over")


STRIKES: list[Callable[[psutil.Process], None]] = [killed, full_disk]
"""In the middle of transactions. A clean stop there can make the broker itself forget how one ended: see
docs/recovery.md."""


@pytest.mark.slow
def test_a_broker_that_goes_away_and_comes_back_costs_nothing(tmp_path: Path) -> None:
    """The worker goes on by itself, through the one path that every fault takes."""
    with Broker(tmp_path / "broker") as broker:
        pipeline = Pipeline(broker.bootstrap, "outage-", tmp_path)
        pipeline.environment = {"FORKS_WORKER__BATCH": "50", "FORKS_WORKER__TRANSACTION_TIMEOUT": "5s"}
        feed = Feed(pipeline, invented_events(tmp_path, 160_000))
        with pipeline.worker() as worker:
            for strike in STRIKES:
                feed.send(500)
                with pipeline.follow(pipeline.topics.outcomes) as follower:
                    until(partial(follower.reached, feed.labels), f"{feed.labels} outcomes", worker)
                    stop_in_a_transaction(worker, pipeline, feed, follower)
                strike(broker.process)
                worker.send_signal(signal.SIGCONT)
                broker.wait()
                broker.start()
            with pipeline.follow(pipeline.topics.outcomes) as follower:
                until(partial(follower.reached, feed.labels), "outcomes after that", worker)
            times = starts_over(pipeline)
            broker.process.terminate()  # it takes its leave in order
            broker.wait()
            until(lambda: starts_over(pipeline) > times, "notice of it by a worker that is idle", worker)
            broker.start()
        feed.finish()
        assert_as_in_one_go(pipeline, feed.events)
