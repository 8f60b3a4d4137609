from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest
from confluent_kafka import TopicPartition
from river import linear_model, preprocessing

from bench.deployment import Deployment, invented
from bench.options import Options
from bench.peers import comparison
from bench.peers.kafka_streams import JARS, STORES, KafkaStreamsProgram, find_jdk, outputs_of
from pipeline.broker.jars import LOCK
from pipeline.broker.settings import VERSION
from pipeline.broker.temporary import temporary_broker
from pipeline.errors import ConfigError
from pipeline.kafka.clients import groupless_consumer

EVENTS = 3_000
TIMEOUT = 300.0
"""Seconds within which a busy machine has done them."""


def test_a_peer_that_cannot_be_installed_is_left_out_and_the_result_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def prepare(_: Path) -> NoReturn:
        raise ConfigError("there is no compiler")

    monkeypatch.setattr(comparison, "FRAMEWORKS", {"other": (prepare, 0)})
    found = comparison.run(Options(None, Path(), quiet=False))
    assert found == {"other": {"left_out": "there is no compiler"}}
    assert "other is left out: there is no compiler\n" in capsys.readouterr().err


def test_a_java_without_a_compiler_is_no_jdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"25\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="neither JAVA_HOME nor PATH has a JDK 17 or newer"):
        find_jdk()
    java.with_name("javac").symlink_to(java)
    assert find_jdk() == java.parent


def test_kafka_streams_has_the_version_and_the_jars_of_the_broker() -> None:
    other = set(JARS.read_text().splitlines()) - set(LOCK.read_text().splitlines())
    names = sorted(line.rsplit("/", 1)[1] for line in other)
    assert names[0] == f"kafka-streams-{VERSION}.jar"
    assert [name.split("-")[0] for name in names[1:]] == ["rocksdbjni"]


def read(deployment: Deployment, topic: str, process: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    """Read the committed records of a topic until there is one for each event, and for a second more."""
    consumer = groupless_consumer(deployment.config.kafka)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found, end = list[dict[str, Any]](), time.monotonic() + TIMEOUT

    def consume(seconds: float) -> None:
        messages = consumer.consume(1_000, seconds)
        found.extend(json.loads(each.value() or b"") for each in messages if each.error() is None)

    while len(found) < EVENTS:
        assert process.poll() is None, "the program ended"
        assert time.monotonic() < end, f"{topic} has only {len(found)} records"
        consume(0.1)
    consume(1.0)
    consumer.close()
    return found


@pytest.mark.kafka
@pytest.mark.slow
def test_kafka_streams_predicts_and_learns_each_event_once_as_river_does(tmp_path: Path) -> None:
    try:
        find_jdk()
    except ConfigError as error:
        pytest.skip(str(error))
    (tmp_path / "classes").mkdir()
    program = KafkaStreamsProgram(tmp_path / "classes")
    [*_, store] = STORES
    with temporary_broker() as bootstrap:
        events = invented(tmp_path, EVENTS)
        deployment = Deployment.create(tmp_path, bootstrap, "plays")
        deployment.send(events)
        outputs = outputs_of(store, deployment)
        process = subprocess.Popen(program.launch(store, deployment)[1])
        try:
            predictions, outcomes = (
                read(deployment, topic, process) for topic in (outputs.predictions, outputs.outcomes)
            )
        finally:
            process.kill()
            process.wait()
    frame = events.frame
    assert [each["event_id"] for each in predictions] == frame["event_id"].to_list()
    by_label = frame.sort("label_timestamp", maintain_order=True)
    assert [each["event_id"] for each in outcomes] == by_label["event_id"].to_list()
    assert [each["watch_ratio"] for each in outcomes] == by_label["watch_ratio"].to_list()

    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    learned = 0
    for prediction in predictions:
        while outcomes[learned]["label_timestamp"] < prediction["timestamp"]:
            outcome = outcomes[learned]
            model.learn_one(dict(enumerate(outcome["features"])), outcome["watch_ratio"] > 0.75)
            learned += 1
        expected = model.predict_proba_one(dict(enumerate(prediction["features"]))).get(True, 0.5)
        assert prediction["probability"] == pytest.approx(expected)
    assert learned > EVENTS / 2
