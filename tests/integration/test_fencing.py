"""Transactions that others end: the worker forgets what it had under way, and goes on."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.integration.harness import TIMEOUT, Feed, Pipeline, assert_as_in_one_go, invented_events, until


@pytest.mark.slow
def test_a_worker_whose_transaction_is_ended_by_others_goes_on(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    """By somebody with its transactional id who is in no group, and by the broker, for taking too long."""
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    pipeline.environment = {"FORKS_WORKER__BATCH": "50", "FORKS_WORKER__TRANSACTION_TIMEOUT": "3s"}
    feed = Feed(pipeline, invented_events(tmp_path, 40_000))
    log = pipeline.log_of("worker")

    with pipeline.worker() as worker, pipeline.follow(pipeline.topics.outcomes) as follower:

        def outcomes(count: int) -> bool:
            """Whether so many have come; there is always more to do."""
            feed.keep_ahead(follower)
            return follower.count >= count

        def fenced(times: int) -> bool:
            outcomes(0)
            return log.read_text().count("starting over") >= times

        def fenced_after_a_nap() -> bool:
            """Sleep until no transaction is open; if one was, the broker has mostly ended it by then."""
            worker.send_signal(signal.SIGSTOP)
            until(pipeline.settled, "the end of the sleeper's transaction")
            worker.send_signal(signal.SIGCONT)
            return fenced(2)

        until(partial(outcomes, 100), "the first outcomes", worker)
        identity = f"{topic_prefix}{pipeline.kafka.group}-worker"
        stranger = Producer({"bootstrap.servers": bootstrap, "transactional.id": identity})
        stranger.init_transactions(TIMEOUT)
        until(partial(fenced, 1), "news of the stranger", worker)
        until(fenced_after_a_nap, "news of the broker", worker)
        until(partial(outcomes, follower.count + 500), "outcomes after that", worker)
    assert "newer instance" not in log.read_text()
    feed.finish()
    assert_as_in_one_go(pipeline, feed.events)
