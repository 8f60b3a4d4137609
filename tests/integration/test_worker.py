from __future__ import annotations

import json
import random
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.integration.harness import (
    ALIGNED,
    TIMEOUT,
    Feed,
    Pipeline,
    assert_as_in_one_go,
    invented_events,
    until,
)


def test_what_is_committed_is_what_the_pure_core_says(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 3_000)
    pipeline.produce_events(events)
    pipeline.run_until({pipeline.topics.outcomes: len(events)})
    assert_as_in_one_go(pipeline, events)
    assert pipeline.read(pipeline.topics.dead_letters) == []


@pytest.mark.slow
def test_kills_at_random_moments_leave_the_same_committed_bytes(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    """Two partitions, small batches and frequent snapshots, so that kills hit every part of a batch."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    events = invented_events(tmp_path, 16_000)
    calm = Pipeline(bootstrap, f"{topic_prefix}calm-", tmp_path, partitions=2)
    calm.environment = ALIGNED
    calm.produce_events(events)
    calm.run_until({calm.topics.outcomes: len(events)})

    killed = Pipeline(bootstrap, f"{topic_prefix}killed-", tmp_path, partitions=2)
    killed.environment = ALIGNED | {"FORKS_WORKER__BATCH": "150", "FORKS_CHECKPOINT__OUTCOMES": "1000"}
    feed = Feed(killed, events)
    with killed.follow(killed.topics.outcomes) as follower:
        for _ in range(4):
            feed.send(3_200)
            worker = killed.start_worker()
            try:
                more = follower.count + chance.randrange(1, 2_500)
                until(partial(follower.reached, more), f"{more} outcomes", worker)
                try:
                    worker.wait(chance.uniform(0.0, 0.2))
                except subprocess.TimeoutExpired:
                    worker.send_signal(signal.SIGKILL)
                assert worker.wait(TIMEOUT) == -signal.SIGKILL
            finally:
                worker.kill()
                worker.wait()
    feed.send(len(events) - feed.interactions_sent)
    feed.finish()

    assert killed.read(killed.topics.predictions) == calm.read(calm.topics.predictions)
    assert killed.read(killed.topics.outcomes) == calm.read(calm.topics.outcomes)
    names = [outcome["event_id"] for outcome in killed.read_json(killed.topics.outcomes)]
    assert len(set(names)) == len(names) == len(events)


def test_a_worker_that_stops_and_starts_goes_on_where_it_was(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 2_000)
    half = events.head(1_000)
    pipeline.produce_events(half)
    pipeline.run_until({pipeline.topics.outcomes: len(half)})
    states = [w.value for w in pipeline.read(pipeline.topics.checkpoints) if w.key == b"0/state"]
    assert json.loads(states[-1] or b"")["snapshot"]["folded"] == len(half), "a stop writes the model whole"
    pipeline.produce_events(events.tail(len(events) - len(half)))
    pipeline.run_until({pipeline.topics.outcomes: len(events)})
    sequences = [p["sequence"] for p in pipeline.read_json(pipeline.topics.predictions)]
    assert sequences == list(range(len(events)))


@pytest.mark.slow
def test_workers_that_come_and_go_leave_the_same_committed_bytes(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    events = invented_events(tmp_path, 16_000)
    calm = Pipeline(bootstrap, f"{topic_prefix}calm-", tmp_path, partitions=2)
    calm.environment = ALIGNED
    calm.produce_events(events)
    calm.run_until({calm.topics.outcomes: len(events)})

    shared = Pipeline(bootstrap, f"{topic_prefix}shared-", tmp_path, partitions=2)
    shared.environment = ALIGNED | {"FORKS_WORKER__BATCH": "50"}
    feed = Feed(shared, events)
    feed.send(len(events) // 2)
    with shared.follow(shared.topics.outcomes) as follower, shared.worker(instance=None) as first:
        until(partial(follower.reached, 1_000), "the first worker's outcomes", first)
        with shared.worker(instance=None) as second:
            log = shared.log_of(None)
            until(lambda: log.read_text().count("restored") >= 3, "the second worker's share", second)
            until(lambda: "kept" in log.read_text(), "what the first worker still holds", first)
            feed.send(len(events) - feed.interactions_sent)
            most = feed.labels - 500
            until(partial(follower.reached, most), "outcomes of both", second)
    feed.finish(instance=None)
    assert shared.read(shared.topics.predictions) == calm.read(calm.topics.predictions)
    assert shared.read(shared.topics.outcomes) == calm.read(calm.topics.outcomes)


@pytest.mark.slow
def test_of_two_workers_with_one_name_the_first_leaves(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    pipeline.environment = {"FORKS_WORKER__BATCH": "50"}
    pipeline.options = ("--json",)
    events = invented_events(tmp_path, 8_000)
    pipeline.produce_events(events)
    first = pipeline.start_worker()
    try:
        with pipeline.follow(pipeline.topics.outcomes) as follower:
            until(partial(follower.reached, 200), "the first worker's outcomes", first)
            with pipeline.worker() as second:
                assert first.wait(TIMEOUT) == 7
                until(partial(follower.reached, len(events)), "the second worker's outcomes", second)
    finally:
        first.kill()
        first.wait()
    lines = [json.loads(line) for line in pipeline.log_of("worker").read_text().splitlines()]
    [error] = [line["event"] for line in lines if line.get("exit_code")]
    assert "another worker with kafka.instance = worker has taken over" in error
    assert_as_in_one_go(pipeline, events)
