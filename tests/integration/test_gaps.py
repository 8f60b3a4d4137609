"""Inputs of which something is missing: nothing that was to be processed, or just that."""

from __future__ import annotations

import json
import signal
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.settings import Config, Kafka
from pipeline.errors import TopicError
from pipeline.kafka.access.connection import Admin
from pipeline.worker.worker import Worker
from tests.integration.harness import (
    TIMEOUT,
    Message,
    Pipeline,
    in_one_go,
    interactions_of,
    invented_events,
    labels_of,
    until,
)


def set_up(pipeline: Pipeline, topic: str, **settings: str) -> None:
    """Change a topic, as its owner may at any time."""
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    client = Admin(Kafka(bootstrap=pipeline.kafka.bootstrap))
    client.incremental_alter_configs([resource])[resource].result(TIMEOUT)


def produce_with_aborts(pipeline: Pipeline, messages: list[Message]) -> None:
    """Write each hundred in a transaction, that is first taken back."""
    identity = f"{pipeline.kafka.prefix}inputs"
    producer = Producer({"bootstrap.servers": pipeline.kafka.bootstrap, "transactional.id": identity})
    producer.init_transactions(TIMEOUT)
    for begin in range(0, len(messages), 100):
        for end in (producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for topic, key, value, timestamp in messages[begin : begin + 100]:
                producer.produce(topic, value, key, timestamp=timestamp)
            assert producer.flush(TIMEOUT) == 0
            end(TIMEOUT)


def test_gaps_in_the_inputs_do_not_show(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    """Aborted transactions leave them, and so does compaction, before anyone has set the topic right."""
    pipeline = Pipeline(
        bootstrap, topic_prefix, tmp_path, segment_ms="43200000", min_cleanable_dirty_ratio="0"
    )
    topic = pipeline.topics.interactions
    events = invented_events(tmp_path, 2_000)
    interactions = list(interactions_of(pipeline.topics, events))
    pipeline.produce(interactions[:-500])
    produce_with_aborts(pipeline, interactions[-500:])  # the segment that stays as it is
    pipeline.produce(labels_of(pipeline.topics, events))
    set_up(pipeline, topic, cleanup_policy="compact")  # only now, so that it is done once
    with pytest.raises(TopicError, match=r"cleanup\.policy is compact; set it to delete"):
        Worker(Config(kafka=pipeline.kafka))
    until(lambda: len(pipeline.read(topic)) < len(events), "compaction")
    set_up(pipeline, topic, cleanup_policy="delete")
    left = [json.loads(written.value or b"")["event_id"] for written in pipeline.read(topic)]
    assert 0 < len(left) < len(events)

    pipeline.run_until({pipeline.topics.outcomes: len(left)})
    predictions, outcomes = in_one_go(pipeline, events.filter(pl.col("event_id").is_in(left)))
    assert [w.value for w in pipeline.read(pipeline.topics.predictions)] == predictions
    assert [w.value for w in pipeline.read(pipeline.topics.outcomes)] == outcomes
    group_options = ["--bootstrap", bootstrap, "--prefix", topic_prefix, "--group", pipeline.kafka.group]
    audited = CliRunner().invoke(app, ["audit", *group_options])
    assert audited.exit_code == 0, audited.output


@pytest.mark.parametrize("name", ["interactions", "labels"])
def test_a_worker_ends_when_retention_takes_what_it_has_not_read(
    name: str, bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    topic = f"{topic_prefix}{'watch-labels' if name == 'labels' else name}"
    events = invented_events(tmp_path, 500).head(400)
    pipeline.produce_events(events.head(200))
    later = interactions_of if name == "interactions" else labels_of
    worker = pipeline.start_worker()
    try:
        with pipeline.follow(pipeline.topics.outcomes) as follower:
            until(partial(follower.reached, 200), "the first outcomes", worker)
        worker.send_signal(signal.SIGSTOP)
        for number in (
            200,
            300,
        ):  # a fetch under way brings the first of them, at most
            pipeline.produce(later(pipeline.topics, events[number : number + 100]))
        client = Admin(Kafka(bootstrap=bootstrap))
        end = TopicPartition(topic, 0, 400)
        client.delete_records([end])[end].result(TIMEOUT)
        worker.send_signal(signal.SIGCONT)
        assert worker.wait(TIMEOUT) == 5
    finally:
        worker.kill()
        worker.wait()
    assert f"{topic} has lost messages of partition 0 that were not yet processed" in (
        pipeline.log_of("worker").read_text()
    )
