from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import pytest

from tests.integration.harness import (
    TIMEOUT,
    Feed,
    Pipeline,
    assert_as_in_one_go,
    invented_events,
    stop_in_a_transaction,
    until,
)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["assigned", "restored"])
def test_a_worker_that_wakes_after_another_took_its_name_writes_nothing_and_leaves(
    moment: str, bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    pipeline.environment = {"FORKS_WORKER__BATCH": "50", "FORKS_WORKER__SESSION_TIMEOUT": "60s"}
    events = invented_events(tmp_path, 2_000)
    pipeline.produce_events(events)
    log = tmp_path / "zombie.log"
    zombie = pipeline.start_worker(log_path=log)
    try:
        until(lambda: moment in log.read_text(), f"the first worker is {moment}", zombie)
        zombie.send_signal(signal.SIGSTOP)
        with pipeline.worker() as second:
            with pipeline.follow(pipeline.topics.outcomes) as follower:
                until(partial(follower.reached, 1), "the second worker's outcomes", second)
                zombie.send_signal(signal.SIGCONT)
                until(partial(follower.reached, len(events)), "all outcomes", second)
            assert zombie.wait(TIMEOUT) == 7
    finally:
        zombie.kill()
        zombie.wait()
    assert_as_in_one_go(pipeline, events)


@pytest.mark.slow
def test_workers_that_wake_after_their_partition_moved_write_nothing_and_join_again(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    """One sleeps over its session while it restores, the other then while it works; neither has a name."""
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    pipeline.environment = {
        "FORKS_WORKER__BATCH": "50",
        "FORKS_WORKER__SESSION_TIMEOUT": "6s",
        "FORKS_WORKER__TRANSACTION_TIMEOUT": "5s",
    }
    feed = Feed(pipeline, invented_events(tmp_path, 160_000))
    feed.send(500)
    log = tmp_path / "first.log"
    first = pipeline.start_worker(instance=None, log_path=log)
    try:
        until(lambda: "assigned" in log.read_text(), "the first worker is assigned", first)
        first.send_signal(signal.SIGSTOP)
        with (
            pipeline.worker(instance=None) as second,
            pipeline.follow(pipeline.topics.outcomes) as follower,
        ):
            log = pipeline.log_of(None)
            until(lambda: "restored" in log.read_text(), "the second worker has the partition", second)
            stop_in_a_transaction(second, pipeline, feed, follower)
            first.send_signal(signal.SIGCONT)
            until(partial(follower.reached, feed.labels), "the first worker's outcomes", first)
            second.send_signal(signal.SIGCONT)
            feed.send(500)
            until(partial(follower.reached, feed.labels), "outcomes after that", first)
        first.send_signal(signal.SIGTERM)
        assert first.wait(TIMEOUT) == 0
    finally:
        first.kill()
        first.wait()
    feed.finish(instance=None)
    assert_as_in_one_go(pipeline, feed.events)
