from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.kafka.harness import Pipeline, in_one_go, invented_events, until

FORKS = Path(sys.executable).with_name("forks")


def broker(command: str, data: Path, *options: str) -> None:
    subprocess.run(
        [FORKS, "broker", command, "--data", data, *options], check=True, timeout=120, capture_output=True
    )


def test_a_broker_that_goes_away_and_comes_back_costs_nothing(tmp_path: Path, free_port: int) -> None:
    """The worker goes on by itself, through the one path that every fault takes."""
    data = tmp_path / "broker"
    broker("start", data, "--port", str(free_port))
    try:
        pipeline = Pipeline(f"127.0.0.1:{free_port}", "outage-", tmp_path)
        pipeline.environment = {"FORKS_WORKER__BATCH": "50"}
        events = invented_events(tmp_path, 8_000)
        pipeline.produce_events(events)
        with pipeline.worker() as worker:
            with pipeline.follow(pipeline.topics.outcomes) as follower:
                until(partial(follower.reached, 500), "the first outcomes", worker)
            broker("stop", data)
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
