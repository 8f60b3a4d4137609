"""`forks checkpoint recover` and `sign`: what another writer did to the checkpoints, and the way back."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.config.settings import Config, Join, Sharing
from pipeline.errors import ForksError, StateError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.new_client import client_settings
from pipeline.task.state import State
from pipeline.tools.checkpoint import Group
from pipeline.tools.checkpoint.recovering import derive
from tests.integration.harness import (
    TIMEOUT,
    Message,
    Pipeline,
    interactions_of,
    invented_events,
    labels_of,
    until,
)
from tests.integration.test_slates import check_run, pipeline_of_slates, shelves
from tests.integration.test_stream import command

KEY = b"a key of the tests, thirty bytes"


def forks(pipeline: Pipeline, *arguments: str) -> Result:
    kafka = pipeline.kafka
    where = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group)
    return CliRunner().invoke(app, [*arguments, *where], env=pipeline.environment)


def refused(result: Result) -> str:
    assert isinstance(result.exception, ForksError), (result.output, result.exception)
    assert isinstance(result.exception, StateError)
    return str(result.exception)


def assert_clean(pipeline: Pipeline) -> None:
    audited = forks(pipeline, "audit", "--json")
    assert audited.exit_code == 0, audited.output
    assert json.loads(audited.stdout)["differences"] == 0


def recovered(pipeline: Pipeline) -> list[str]:
    """Recover; return where the state of each partition came from."""
    result = forks(pipeline, "checkpoint", "recover", "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return [each["source"] for each in json.loads(result.stdout)]


def committed(pipeline: Pipeline, partition: int = 0) -> State:
    with Group(Config(kafka=pipeline.kafka)) as group:
        found = group.committed_state(partition)
    assert found is not None
    return found.state


def name_no_state(pipeline: Pipeline, note: str) -> None:
    """Commit the same offsets with another note, as a writer with the group's rights can."""
    consumer = Consumer(client_settings(pipeline.kafka) | {"group.id": pipeline.kafka.group})
    try:
        asked = [TopicPartition(topic, 0) for topic in pipeline.topics.inputs]
        answered = consumer.committed(asked, TIMEOUT)
        changed = [TopicPartition(each.topic, 0, each.offset, note) for each in answered]
        consumer.commit(offsets=changed, asynchronous=False)
    finally:
        consumer.close()


def compact(pipeline: Pipeline) -> None:
    """Have the broker compact the checkpoints at once."""
    topic = pipeline.topics.checkpoints
    settings = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0"}
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    client = Admin(pipeline.kafka)
    client.incremental_alter_configs([resource])[resource].result(TIMEOUT)


def partly_processed(pipeline: Pipeline, folder: Path, count: int) -> pl.DataFrame:
    """Process half of some events, with labels that wait, duplicates and a dead letter; return all events."""
    pipeline.environment = {"FORKS_JOIN__EARLY": "30d", "FORKS_JOIN__WINDOW": "30d"}
    events = invented_events(folder, count)
    half = len(events) // 2
    topics = pipeline.topics
    pipeline.produce_events(events[:half])
    pipeline.produce(interactions_of(topics, events[half - 2 : half]))
    pipeline.produce(labels_of(topics, events[half : half + 3]))
    pipeline.produce([Message(topics.labels, b"1", b"{")])
    pipeline.run_until({topics.outcomes: half, topics.dead_letters: 1}, instance=None)
    return events


def go_on(pipeline: Pipeline, events: pl.DataFrame) -> None:
    """Process the other half: the three labels that wait are joined, too."""
    half = len(events) // 2
    pipeline.produce(interactions_of(pipeline.topics, events[half:]))
    pipeline.produce(labels_of(pipeline.topics, events[half + 3 :]))
    pipeline.run_until({pipeline.topics.outcomes: len(events)}, instance=None)
    outcomes = pipeline.read_json(pipeline.topics.outcomes)
    assert sorted(outcome["event_id"] for outcome in outcomes) == sorted(events["event_id"].to_list())


@pytest.mark.slow
def test_a_state_is_derived_when_compaction_has_removed_its_record(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = partly_processed(pipeline, tmp_path, 1_200)
    before = committed(pipeline)
    assert len(before.waiting) == 3
    assert recovered(pipeline) == ["usable"]

    compact(pipeline)
    checkpoints = pipeline.topics.checkpoints

    def overwrite() -> bool:
        pipeline.produce([Message(checkpoints, b"0/state", b'{"version": 3}')])
        result = forks(pipeline, "checkpoint", "list")
        return result.exception is not None

    until(overwrite, "the compaction of the state record")
    assert "0/state has replaced it in compaction" in refused(forks(pipeline, "checkpoint", "list"))
    environment = pipeline.environment
    pipeline.environment = environment | {"FORKS_LEARNER__BUDGET": "50"}
    message = refused(forks(pipeline, "checkpoint", "recover"))
    assert "does not follow from the outcomes before it under these settings" in message
    pipeline.environment = environment
    assert recovered(pipeline) == ["derived"]
    after = committed(pipeline)
    for name in ("predictions", "outcomes", "pending", "interactions", "labels", "waiting", "stream_time"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.counters == before.counters | {"early": 3}
    assert_clean(pipeline)
    go_on(pipeline, events)
    assert_clean(pipeline)


def test_a_state_record_that_offsets_no_longer_name_is_found_again(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = partly_processed(pipeline, tmp_path, 600)
    before = committed(pipeline)
    name_no_state(pipeline, "state=" + 20 * "9")
    assert "`forks checkpoint recover`" in refused(forks(pipeline, "checkpoint", "list"))
    assert recovered(pipeline) == ["found"]
    assert committed(pipeline) == before
    assert_clean(pipeline)
    go_on(pipeline, events)
    assert_clean(pipeline)


def test_offsets_that_were_set_back_are_refused(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    partly_processed(pipeline, tmp_path, 600)
    consumer = Consumer(client_settings(pipeline.kafka) | {"group.id": pipeline.kafka.group})
    try:
        back = [TopicPartition(topic, 0, 5) for topic in pipeline.topics.inputs]
        consumer.commit(offsets=back, asynchronous=False)
    finally:
        consumer.close()
    assert "the group's offsets were set back" in refused(forks(pipeline, "checkpoint", "recover"))


def test_a_key_finds_out_who_writes_without_it(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    key, other = tmp_path / "key", tmp_path / "other"
    key.write_bytes(KEY)
    other.write_bytes(KEY[::-1])
    events = invented_events(tmp_path, 600)
    half = len(events) // 2
    pipeline.produce_events(events[:half])
    pipeline.run_until({pipeline.topics.outcomes: half}, instance=None)

    pipeline.environment = {"FORKS_CHECKPOINT__KEY": str(key)}
    assert "has no MAC, but checkpoint.key is set" in refused(forks(pipeline, "checkpoint", "list"))
    signed = forks(pipeline, "checkpoint", "sign")
    assert "2 partitions again, with a MAC" in signed.output, signed.exception
    pipeline.produce_events(events[half:])
    pipeline.run_until({pipeline.topics.outcomes: len(events)}, instance=None)
    assert_clean(pipeline)

    pipeline.environment = {"FORKS_CHECKPOINT__KEY": str(other)}
    assert "is not that of checkpoint.key" in refused(forks(pipeline, "checkpoint", "list"))
    pipeline.environment = {}
    assert "signed, but checkpoint.key is not set" in refused(forks(pipeline, "checkpoint", "recover"))
    pipeline.environment = {"FORKS_CHECKPOINT__KEY": str(other)}
    changed = forks(pipeline, "checkpoint", "sign", "--former-key", str(key), "--json")
    assert json.loads(changed.stdout) == {"partitions": [0, 1], "signed": True}, changed.exception
    assert forks(pipeline, "checkpoint", "list").exit_code == 0

    for written in pipeline.read(pipeline.topics.checkpoints):
        assert KEY not in (written.value or b"")
    pipeline.environment = {}
    removed = forks(pipeline, "checkpoint", "sign", "--former-key", str(other))
    assert "without a MAC" in removed.output, removed.exception
    assert_clean(pipeline)


@pytest.mark.slow
@pytest.mark.parametrize("align", [None, "4h"])
def test_what_partitions_have_shared_is_derived_too(
    bootstrap: str, topic_prefix: str, tmp_path: Path, align: str | None
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    pipeline.environment = {"FORKS_JOIN__WINDOW": "30d"}
    pipeline.environment |= {} if align is None else {"FORKS_SHARING__ALIGN": align}
    events = invented_events(tmp_path, 1_000)
    half = len(events) // 2
    pipeline.produce_events(events[:half])
    pipeline.run_until({pipeline.topics.outcomes: half}, instance=None)
    pipeline.produce_events(events[half:])  # learned together with what the first half has shared
    pipeline.run_until({pipeline.topics.outcomes: len(events)}, instance=None)
    config = Config(
        kafka=pipeline.kafka,
        sharing=Sharing.model_validate({"align": align} if align else {}),
        join=Join.model_validate({"window": "30d"}),
    )
    with Group(config) as group:
        for partition in range(2):
            found = group.committed_state(partition)
            assert found is not None
            written = found.state
            offsets = (written.interactions.offset, written.labels.offset)
            derived, snapshot = derive(group, partition, offsets, None, lambda _: None)
            assert written.taken
            names = ["published", "outcomes_from", "pending_from", "waiting", "stream_time"]
            for name in [*names, "windows"] if align else [*names, "taken"]:
                assert getattr(derived, name) == getattr(written, name), name
            assert snapshot is not None
            assert written.snapshot is not None
            assert snapshot.outcomes_learned == written.snapshot.outcomes_learned
            assert hashlib.sha256(snapshot.data).hexdigest() == written.snapshot.sha256


@pytest.mark.slow
def test_the_state_of_slates_is_derived(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = pipeline_of_slates(bootstrap, topic_prefix, tmp_path, partitions=1)
    sent, topics, options = shelves(pipeline.topics), pipeline.topics, pipeline.options
    half, group = len(sent.messages) // 2, ("--group", pipeline.kafka.group)
    pipeline.produce(sent.messages[:half])
    shown = sum(each.topic == topics.interactions for each in sent.messages[:half])
    pipeline.run_until({topics.predictions: shown}, instance=None)
    states = [each for each in pipeline.read(topics.checkpoints) if each.key == b"0/state"]
    before = json.loads(states[-1].value or b"")
    assert before["pending"] > 0
    compact(pipeline)

    def overwrite() -> bool:
        pipeline.produce([Message(topics.checkpoints, b"0/state", b'{"version": 3}')])
        return forks(pipeline, "checkpoint", "list", *options).exception is not None

    until(overwrite, "the compaction of the state record")
    result = forks(pipeline, "checkpoint", "recover", "--json", *options)
    assert result.exit_code == 0, result.exception
    assert [each["source"] for each in json.loads(result.stdout)] == ["derived"]
    states = [each for each in pipeline.read(topics.checkpoints) if each.key == b"0/state"]
    after = json.loads(states[-1].value or b"")
    for name in ("predictions", "outcomes", "pending", "pending_from", "interactions", "labels"):
        assert after[name] == before[name], name
    assert after["counters"]["items"] == before["counters"]["items"]
    pipeline.produce(sent.messages[half:])
    check_run(pipeline, sent, kills=(900,))
    assert "no difference" in command(pipeline, "audit", *group)
