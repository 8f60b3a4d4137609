"""`forks audit` beside a worker, and after hands have been at work."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.errors import StateError
from pipeline.kafka.clients import groupless_consumer
from tests.integration.harness import Message, Pipeline, invented_events, until


def audit(pipeline: Pipeline, *options: str, **settings: str) -> Result:
    """In this process, which has compiled the learner after the first time."""
    kafka = pipeline.kafka
    group_options = ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group]
    return CliRunner().invoke(app, ["audit", *group_options, *options], env=settings)


def end_of(pipeline: Pipeline, topic: str, partition: int) -> int:
    consumer = groupless_consumer(pipeline.kafka)
    try:
        end: int = consumer.get_watermark_offsets(TopicPartition(topic, partition), 10.0)[1]
    finally:
        consumer.close()
    return end


def test_a_run_audits_clean_beside_its_worker_and_a_record_from_outside_is_named(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    pipeline.environment = {"FORKS_WORKER__BATCH": "100", "FORKS_CHECKPOINT__OUTCOMES": "300"}
    outcomes = pipeline.topics.outcomes
    events = invented_events(tmp_path, 3_000)
    pipeline.produce([Message(pipeline.topics.labels, b"7", b"no JSON")])
    pipeline.produce_events(events)
    with pipeline.worker() as worker, pipeline.follow(outcomes) as follower:
        until(partial(follower.reached, 500), "500 outcomes", worker)
        beside = audit(pipeline)
        assert beside.exit_code == 0, beside.output
        assert "no difference" in beside.stdout
        until(partial(follower.reached, len(events)), "all outcomes", worker)

        whole = audit(pipeline, "--json")
        assert whole.exit_code == 0, whole.output
        checked = [part["checked"] for part in json.loads(whole.stdout)["partitions"]]
        for name in ("predictions derived again", "outcomes learned"):
            assert sum(part[name] for part in checked) == len(events)
        assert all(part["snapshots compared with the model"] == 1 for part in checked)
        assert sum(part.get("dead letters", 0) for part in checked) == 1

        stray = pipeline.read(outcomes)[0]
        pipeline.produce([Message(outcomes, stray.key, stray.value, stray.timestamp)])
        offset = end_of(pipeline, outcomes, stray.partition) - 1
        sabotaged = audit(pipeline, "--from-snapshot")
    assert sabotaged.exit_code == 1, sabotaged.output
    assert f"first difference: {outcomes}, partition {stray.partition}, offset {offset}" in sabotaged.stdout


def test_offsets_that_were_moved_are_named_and_other_settings_refused(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    fresh = audit(pipeline)
    assert fresh.exit_code == 0, fresh.output
    assert "no worker has committed anything yet" in fresh.stdout
    events = invented_events(tmp_path, 500)
    pipeline.produce_events(events)
    pipeline.run_until({pipeline.topics.outcomes: len(events)}, instance=None)

    other = audit(pipeline, FORKS_LEARNER__BUDGET="40")
    assert isinstance(other.exception, StateError)
    assert "learner.budget is '40', was '160'" in str(other.exception)

    kafka, topic = pipeline.kafka, pipeline.topics.interactions
    client = AdminClient({"bootstrap.servers": kafka.bootstrap})
    topic_partition = TopicPartition(topic, 0)
    request = ConsumerGroupTopicPartitions(kafka.group, [topic_partition])
    committed = client.list_consumer_group_offsets([request])[kafka.group].result().topic_partitions[0]
    moved = TopicPartition(topic, 0, committed.offset - 1, committed.metadata)
    request = ConsumerGroupTopicPartitions(kafka.group, [moved])
    client.alter_consumer_group_offsets([request])[kafka.group].result()
    answer = audit(pipeline)
    assert answer.exit_code == 1, answer.output
    assert f"offsets of partition 0 are ({len(events) - 1}, {len(events)})" in answer.stdout


def test_outputs_of_which_no_offset_tells_are_named(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    pipeline.produce([Message(pipeline.topics.predictions, b"7", b"{}")])
    answer = audit(pipeline)
    assert answer.exit_code == 1, answer.output
    assert f"{pipeline.topics.predictions}, partition 0, offset 0" in answer.stdout
