"""A follower beside real workers, which are killed, promoted and installed anew."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import polars as pl

from pipeline.config.loader import load
from pipeline.records.kuairec import KuaiRecInteraction
from pipeline.serving.answers import PartitionFigures
from pipeline.serving.follower import Follower
from tests.integration.harness import Pipeline, invented_events, until


@contextmanager
def following(pipeline: Pipeline, **settings: str) -> Iterator[Follower]:
    """A follower of the pipeline's group."""
    kafka = pipeline.kafka
    flags = {"kafka.bootstrap": kafka.bootstrap, "kafka.prefix": kafka.prefix, "kafka.group": kafka.group}
    follower = Follower(load(None, flags | settings))
    follower.start()
    try:
        yield follower
    finally:
        follower.stop()


def candidates(events: pl.DataFrame, number: int, count: int = 5) -> list[KuaiRecInteraction]:
    """The user of an event, and some videos, of which one is unknown."""
    event = events.row(number % len(events), named=True)
    videos = [*events["video_id"].gather_every(7)[number % 50 : number % 50 + count - 1], 10**9]
    return [KuaiRecInteraction(0, event["user_id"], each, event["timestamp"], 1.0) for each in videos]


def figures(follower: Follower) -> tuple[PartitionFigures, ...]:
    return follower.figures.partitions


def caught_up(follower: Follower, since: float) -> bool:
    """Whether all that was committed at a time is learned."""
    return all(each.current_at is not None and each.current_at >= since for each in figures(follower))


def test_smoke(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    events = invented_events(tmp_path, 4_000)
    pipeline.environment = {"FORKS_WORKER__BATCH": "50", "FORKS_CHECKPOINT__OUTCOMES": "300"}
    half = len(events) // 2
    answers = []
    with following(pipeline) as follower:
        until(lambda: all(each.state == "following" for each in figures(follower)), "the follower")
        pipeline.produce_events(events[:half])
        pipeline.run_until({pipeline.topics.outcomes: half})
        since = time.monotonic()
        until(partial(caught_up, follower, since), "all outcomes")
        print(follower.figures)
        for n in range(10):
            c = candidates(events, n)
            answers.append(follower.score(follower.partition_of(c[0].user_id), c, explain=True))
        print(answers[0])
    assert sum(each.model_version for each in figures(follower)) == half
