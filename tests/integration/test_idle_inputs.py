"""A replay beside a worker that has been idle for long."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial
from itertools import chain
from pathlib import Path

from tests.integration.harness import Pipeline, interactions_of, invented_events, labels_of, until


def test_a_replay_after_a_silence_waits_for_its_labels(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    """Its interactions are days ahead before the first label is read, unless they wait."""
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=1)
    pipeline.environment = {"FORKS_JOIN__MAX_IDLE": "5s", "FORKS_JOIN__WINDOW": "1h"}
    events = invented_events(tmp_path, 3_000).unique("event_id", keep="first", maintain_order=True)
    with pipeline.follow(pipeline.topics.outcomes) as follower, pipeline.worker() as worker:
        pipeline.produce_events(events.head(10))
        until(partial(follower.reached, 10), "the first outcomes", worker)
        time.sleep(6.0)  # the silence, which is longer than the wait
        replayed, topics = events.slice(10), pipeline.topics
        pipeline.produce(chain(interactions_of(topics, replayed), labels_of(topics, replayed)))
        until(partial(follower.reached, len(events)), "the other outcomes", worker)
    statuses = Counter(each["status"] for each in pipeline.read_json(pipeline.topics.outcomes))
    assert statuses == {"labelled": len(events)}
