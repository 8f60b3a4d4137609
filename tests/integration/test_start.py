"""A worker that cannot run says what is wrong and what to do, and ends with the exit code of that."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest
import structlog
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from pipeline.config.settings import Config, Kafka
from pipeline.config.topics import Topics
from pipeline.errors import StateError
from pipeline.kafka.access.connection import Admin
from pipeline.worker.worker import Worker
from tests.integration.harness import TIMEOUT, Message, Pipeline, interactions_of, invented_events
from tests.support.forked import run_command


def create(bootstrap: str, topics: list[NewTopic]) -> None:
    client = Admin(Kafka(bootstrap=bootstrap))
    for future in client.create_topics(topics).values():
        future.result(TIMEOUT)


def run(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_command(*arguments, folder=folder, environment=environment)


def test_a_worker_logs_ready_only_when_it_can_be_stopped(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    with structlog.testing.capture_logs() as message:
        worker = Worker(Config(kafka=pipeline.kafka))
        assert "ready" not in [line["event"] for line in message]
        worker.stop()
        worker.run()
    assert "ready" in [line["event"] for line in message]


def test_missing_topics_are_named_with_the_command_that_creates_them(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    done = run("run", "--bootstrap", bootstrap, "--prefix", topic_prefix, folder=tmp_path)
    assert done.returncode == 4
    for name in Topics(topic_prefix).all:
        assert f"{name}: the topic does not exist" in done.stderr
    assert "forks topics create" in done.stderr


def test_partition_counts_that_differ_are_named(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    topics = Topics(topic_prefix)
    create(
        bootstrap,
        [
            NewTopic(name, 3 if name == topics.labels else 2, 1, config=topics.settings(name))
            for name in topics.all
        ],
    )
    done = run("run", "--bootstrap", bootstrap, "--prefix", topic_prefix, folder=tmp_path)
    assert done.returncode == 4
    assert f"{topics.labels}: it has 3 partitions where {topics.interactions} has 2" in done.stderr
    report = run("topics", "check", "--bootstrap", bootstrap, "--prefix", topic_prefix, folder=tmp_path)
    assert report.returncode == 4
    assert "it has 3 partitions" in report.stdout


def test_a_checkpoints_topic_that_is_not_compacted_is_refused(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    topics = Topics(topic_prefix)
    create(bootstrap, [NewTopic(name, 1, 1, config=Topics("other").settings("")) for name in topics.all])
    done = run("run", "--bootstrap", bootstrap, "--prefix", topic_prefix, folder=tmp_path)
    assert done.returncode == 4
    assert f"{topics.checkpoints}: cleanup.policy is delete; set it to compact" in done.stderr


def test_a_missing_broker_is_reported_with_its_address(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        done = run("run", "--bootstrap", address, folder=tmp_path)
    assert done.returncode == 3
    assert f"no Kafka answers at {address}" in done.stderr
    assert "forks broker start" in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[join]\nwindw = '6h'\n", "join.windw is not a setting; did you mean join.window?"),
        ("[join]\nwindow = 6\n", "join.window: a duration is a whole number and a unit"),
        ("[worker]\nbatch = 0\n", "worker.batch: Input should be greater than or equal to 1 (got 0)"),
        ("[learner]\nbudget = 1\n", "learner.budget = 1 is not accepted"),
        ("[learner]\nbugdet = 100\n", "learner.bugdet is not a setting"),
        ("[features]\nusers = 'nowhere.csv'\n", "nowhere.csv"),
        ("[join\n", "is not valid TOML"),
    ],
)
def test_a_wrong_configuration_is_reported_before_anything_is_connected(
    content: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "forks.toml").write_text(content)
    done = run("run", "--bootstrap", "127.0.0.1:1", folder=tmp_path)
    assert done.returncode == (6 if "nowhere" in message else 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_another_learner_on_old_outputs_is_refused(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 300)
    pipeline.produce_events(events)
    pipeline.run_until({pipeline.topics.outcomes: len(events)})
    worker = ("run", "--bootstrap", bootstrap, "--prefix", topic_prefix, "--group", pipeline.kafka.group)
    done = run(*worker, folder=tmp_path, FORKS_LEARNER__BUDGET="50")
    assert done.returncode == 5
    assert "learner.budget is '50', was '160'" in done.stderr


@pytest.mark.slow
def test_offsets_set_by_hand_are_refused(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    """To earlier or later ones, with what a worker noted beside them or without, and none at all."""
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 300)
    pipeline.produce_events(events)
    pipeline.run_until({pipeline.topics.outcomes: len(events)}, instance=None)  # a named member would stay
    pipeline.produce_events(events.head(20))  # something after that, to set offsets to
    config = Config(kafka=pipeline.kafka)
    inputs, end = pipeline.topics.inputs, len(events)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": pipeline.kafka.group})
    noted = consumer.committed([TopicPartition(topic, 0) for topic in inputs], TIMEOUT)[0].metadata
    resets = [
        ({inputs[0]: 5}, "", "were not committed by a worker"),
        (dict.fromkeys(inputs, 5), "", "were not committed by a worker"),
        (dict.fromkeys(inputs, end + 5), "", "were not committed by a worker"),
        (dict.fromkeys(inputs, 5), noted, "were set by hand. Set them back to go on"),
        (dict.fromkeys(inputs, end + 5), noted, "were set by hand. Set them back to go on"),
    ]
    for offsets, note, message in resets:
        topic_partitions = [TopicPartition(topic, 0, offset, note) for topic, offset in offsets.items()]
        consumer.commit(offsets=topic_partitions, asynchronous=False)
        with pytest.raises(StateError, match=message):
            Worker(config).run()
    consumer.close()
    client, group = Admin(Kafka(bootstrap=bootstrap)), pipeline.kafka.group
    client.delete_consumer_groups([group])[group].result(TIMEOUT)
    with pytest.raises(StateError, match="this group's offsets were deleted or have expired"):
        Worker(config).run()
    done = run(
        "run",
        "--bootstrap",
        bootstrap,
        "--prefix",
        topic_prefix,
        "--group",
        pipeline.kafka.group,
        folder=tmp_path,
    )
    assert done.returncode == 5
    assert "Traceback" not in done.stderr


def test_a_second_group_on_the_same_outputs_is_refused(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 300)
    pipeline.produce_events(events)
    pipeline.run_until({pipeline.topics.outcomes: len(events)})
    done = run(
        "run", "--bootstrap", bootstrap, "--prefix", topic_prefix, "--group", "another", folder=tmp_path
    )
    assert done.returncode == 5
    assert "holds records: they belong to another group" in done.stderr


def test_inputs_written_with_another_partitioner_are_refused(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=4)
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "consistent_random"})
    for topic, key, value, timestamp in interactions_of(pipeline.topics, invented_events(tmp_path, 200)):
        producer.produce(topic, value, key, timestamp=timestamp)
    assert producer.flush(TIMEOUT) == 0
    done = run("run", "--bootstrap", bootstrap, "--prefix", topic_prefix, folder=tmp_path)
    assert done.returncode == 4
    assert f"{pipeline.topics.interactions}: only" in done.stderr
    assert "partitioner=murmur2_random" in done.stderr


def test_a_record_that_no_worker_wrote_is_named(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 300)
    pipeline.produce_events(events)
    pipeline.run_until({pipeline.topics.outcomes: len(events)}, instance=None)
    pipeline.produce([Message(pipeline.topics.outcomes, b"7", b"by hand", 1_600_000_000_000)])
    worker = ("run", "--bootstrap", bootstrap, "--prefix", topic_prefix, "--group", pipeline.kafka.group)
    done = run(*worker, folder=tmp_path)
    assert done.returncode == 5
    assert f"{pipeline.topics.outcomes}, partition 0, offset" in done.stderr
    assert "no worker wrote this record" in done.stderr


@pytest.mark.slow
def test_a_group_of_before_there_were_effects_goes_on_without_them(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    """Its state records name no kind of features."""
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 400)
    half = len(events) // 2
    running = {"FORKS_FEATURES__KIND": "running"}
    pipeline.environment = running
    pipeline.produce_events(events[:half])
    pipeline.run_until({pipeline.topics.outcomes: half}, instance=None)
    group = ("--bootstrap", bootstrap, "--prefix", topic_prefix, "--group", pipeline.kafka.group)
    for command in ("run", "rebuild", "audit"):
        done = run(command, *group, folder=tmp_path)
        assert done.returncode == 5, done.stderr
        assert "features.kind is 'effects', was 'running'" in done.stderr
        assert 'Set features.kind = "running" to go on with those' in done.stderr
    pipeline.produce_events(events[half:])
    pipeline.run_until({pipeline.topics.outcomes: len(events)}, instance=None)
    done = run("audit", *group, folder=tmp_path, **running)
    assert done.returncode == 0, done.stdout + done.stderr
