from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import ALIGNED, TIMEOUT, Pipeline, invented_events, until


def logged(pipeline: Pipeline, *events: str) -> list[dict[str, Any]]:
    """What the workers' common log says of something."""
    lines = pipeline.log_of("node").read_bytes().splitlines(keepends=True)
    whole = [json.loads(line) for line in lines if line.endswith(b"}\n")]
    return [line for line in whole if line["event"] in events]


def both_at_work(pipeline: Pipeline) -> bool:
    """Whether each worker has had a partition."""
    return {line["worker"] for line in logged(pipeline, "restored")} == {0, 1}


def both_hold_half(pipeline: Pipeline) -> bool:
    """Whether the group is done with dealing out: two partitions each, restored."""
    assigned: dict[int, set[int]] = {}
    held: dict[int, set[int]] = {}
    for line in logged(pipeline, "assigned", "restored", "kept"):
        if line["event"] == "assigned":
            assigned[line["worker"]], held[line["worker"]] = set(line["partitions"]), set()
        else:
            held[line["worker"]].add(line["partition"])
    return held == assigned and [len(share) for share in held.values()] == [2, 2]


def pair(bootstrap: str, prefix: str, folder: Path) -> Pipeline:
    """A pipeline of four partitions, for a pair of workers."""
    pipeline = Pipeline(bootstrap, prefix, folder, partitions=4)
    pipeline.environment = ALIGNED | {"FORKS_WORKER__BATCH": "100"}
    pipeline.options = ("--workers", "2", "--json")
    return pipeline


@pytest.mark.slow
def test_two_workers_of_one_command_share_the_partitions_and_stop_together(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    events = invented_events(tmp_path, 4_000)
    alone = Pipeline(bootstrap, f"{topic_prefix}alone-", tmp_path, partitions=4)
    alone.environment = ALIGNED
    alone.produce_events(events)
    alone.run_until({alone.topics.outcomes: len(events)})

    both = pair(bootstrap, f"{topic_prefix}both-", tmp_path)
    both.produce_events(events)
    with both.worker("node") as command, both.follow(both.topics.outcomes) as follower:
        until(partial(both_hold_half, both), "half of the partitions for each", command)
        until(partial(follower.reached, len(events)), "all outcomes", command)
    assert {(line["worker"], line["instance"]) for line in logged(both, "ready")} == {
        (0, "node-0"),
        (1, "node-1"),
    }
    shares = {line["worker"]: line["partitions"] for line in logged(both, "stopped")}
    assert sorted(shares[0] + shares[1]) == [0, 1, 2, 3]
    assert len(shares[0]) == len(shares[1])
    assert both.read(both.topics.predictions) == alone.read(alone.topics.predictions)
    assert both.read(both.topics.outcomes) == alone.read(alone.topics.outcomes)


@pytest.mark.slow
def test_where_one_of_two_workers_is_killed_the_other_stops_in_good_order(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    events = invented_events(tmp_path, 4_000)
    both = pair(bootstrap, topic_prefix, tmp_path)
    both.produce_events(events)
    command = both.start_worker("node")
    try:
        until(partial(both_at_work, both), "work of both", command)
        victim = next(line["pid"] for line in logged(both, "started") if line["worker"] == 1)
        os.kill(victim, signal.SIGKILL)
        assert command.wait(TIMEOUT) == 128 + signal.SIGKILL
    finally:
        command.kill()
        command.wait()
    assert [line["worker"] for line in logged(both, "stopped")] == [0]
    both.run_until({both.topics.outcomes: len(events)}, "node")
    names = [outcome["event_id"] for outcome in both.read_json(both.topics.outcomes)]
    assert len(set(names)) == len(names) == len(events)
