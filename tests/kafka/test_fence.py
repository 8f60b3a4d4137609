"""Transactions that others end: the worker forgets what it had under way, and goes on."""

from __future__ import annotations

import signal
import subprocess
from functools import partial
from pathlib import Path

from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec

from pipeline.topics import admin
from tests.kafka.harness import DEADLINE, Pipeline, assert_as_in_one_go, invented_events, until


def settled(pipeline: Pipeline) -> bool:
    """Whether no transaction is open: what is written last was committed, or taken back."""
    client = admin({"bootstrap.servers": pipeline.kafka.bootstrap})
    place = TopicPartition(pipeline.topics.checkpoints, 0)
    ends: list[int] = []
    for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
        futures = client.list_offsets({place: OffsetSpec.latest()}, isolation_level=level)  # type: ignore[no-untyped-call]  # lacks its types
        ends.append(futures[place].result(DEADLINE).offset)
    return ends[0] == ends[1]


def test_a_worker_whose_transaction_is_ended_by_others_goes_on(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    """By somebody with its transactional id who is in no group, and by the broker, for taking too long."""
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    pipeline.environment = {"FORKS_WORKER__BATCH": "50", "FORKS_WORKER__TRANSACTION_TIMEOUT": "3s"}
    events = invented_events(tmp_path, 3_000)
    pipeline.produce_events(events)
    log = pipeline.log_of("worker")

    def fenced(times: int) -> bool:
        return log.read_text().count("starting over") == times

    def nap(worker: subprocess.Popen[bytes]) -> None:
        """Sleep until the broker has ended the transaction, if there is one."""
        worker.send_signal(signal.SIGSTOP)
        until(partial(settled, pipeline), "the end of the sleeper's transaction")
        worker.send_signal(signal.SIGCONT)

    with pipeline.worker() as worker, pipeline.follow(pipeline.topics.outcomes) as follower:
        until(partial(follower.reached, 100), "the first outcomes", worker)
        identity = f"{topic_prefix}{pipeline.kafka.group}-worker"
        stranger = Producer({"bootstrap.servers": bootstrap, "transactional.id": identity})
        stranger.init_transactions(DEADLINE)
        until(partial(fenced, 1), "news of the stranger", worker)
        while not fenced(2):
            more = follower.count + 100
            until(partial(follower.reached, more), f"{more} outcomes", worker)
            nap(worker)
            until(lambda: fenced(2) or follower.reached(more + 100), "the worker awake", worker)  # noqa: B023 - asked at once
        assert not follower.reached(len(events)), "it came too late to matter"
        until(partial(follower.reached, len(events)), "all outcomes", worker)
    assert_as_in_one_go(pipeline, events)
