"""Dead letters that are sent back after their cause was mended, each once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.settings import Config
from pipeline.errors import FencedError
from pipeline.kafka.committed import CommittedOffset
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.partitioner import partition
from pipeline.kafka.redrive import InputMessage, RedriveGroup
from pipeline.records.encoding import encode
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.records.names import REDRIVEN_HEADER
from tests.integration.harness import TIMEOUT, Pipeline, Written, input_producer, until

EVENTS = 1_000
PROGRAM = """
from pipeline.tools.redrive import redriving
redriving.MAX_DEAD_LETTERS = 20
from pipeline.cli import main
main()
"""


def produce(pipeline: Pipeline, producer: Producer, events: int = EVENTS) -> None:
    """Write events that are 20 minutes ahead of the clock, and one without a key."""
    now = round(time.time() * 1000) + 20 * 60_000
    for number in range(events):
        user, at = number % 37, now + 100 * number
        ids = f"e{number}", user, number % 11
        headers: Any = [("trace", str(number).encode()), ("none", None)]
        for topic, record, when in (
            (pipeline.topics.interactions, KuaiRecInteraction(*ids, at, 10_000.0), at),
            (pipeline.topics.labels, WatchLabel(*ids, at + 50, 9_000.0, 0.9), at + 50),
        ):
            producer.produce(topic, encode(record), str(user).encode(), headers=headers, timestamp=when)
    record = KuaiRecInteraction("keyless", 1, 1, now, 10_000.0)
    producer.produce(pipeline.topics.interactions, encode(record), partition=1, timestamp=now)
    assert producer.flush(TIMEOUT) == 0


def command(pipeline: Pipeline, *arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, *options(pipeline)])
    assert result.exit_code == 0, result.output
    return result.stdout


def options(pipeline: Pipeline) -> list[str]:
    kafka = pipeline.kafka
    return ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group]


def redrive(pipeline: Pipeline, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(command(pipeline, "redrive", "--json", *arguments))
    return answer


def kill_in_the_middle(pipeline: Pipeline, sent_before: int) -> None:
    """Kill a redrive that has sent some interactions and not all."""
    arguments = [sys.executable, "-c", PROGRAM, "redrive", "--reason", "future", *options(pipeline)]
    with pipeline.follow(pipeline.topics.interactions) as follower:
        process = subprocess.Popen(arguments, env=os.environ, stderr=subprocess.DEVNULL)
        try:
            until(partial(follower.reached, sent_before + 100), "a part of the dead letters", process)
            process.send_signal(signal.SIGKILL)
            assert process.wait(TIMEOUT) == -signal.SIGKILL
        finally:
            process.kill()
            process.wait()


def origins(messages: list[Written]) -> list[bytes]:
    return [dict(each.headers)[REDRIVEN_HEADER] for each in messages if REDRIVEN_HEADER in dict(each.headers)]


def test_a_thousand_mended_dead_letters_have_a_thousand_predictions_over_a_kill(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, 2)
    topics = pipeline.topics
    pipeline.environment = {"FORKS_JOIN__MAX_AHEAD": "1m", "FORKS_SHARING__INTERVAL": "off"}
    produce(pipeline, input_producer(bootstrap))
    pipeline.run_until({topics.dead_letters: 2 * EVENTS + 1})
    original = {topic: pipeline.read(topic) for topic in topics.inputs}
    assert pipeline.read(topics.predictions) == []

    planned = redrive(pipeline, "--dry-run")
    assert planned["counts"] == {
        topics.interactions: {"future": EVENTS, "wrong_key": 1},
        topics.labels: {"future": EVENTS},
    }
    assert [len(pipeline.read(topic)) for topic in topics.inputs] == [EVENTS + 1, EVENTS]
    kill_in_the_middle(pipeline, EVENTS + 1)
    rest = redrive(pipeline, "--reason", "future")
    assert 0 < rest["redriven"] < 2 * EVENTS
    assert rest["without_original"] == 0
    assert redrive(pipeline, "--reason", "future")["redriven"] == 0
    everything = redrive(pipeline)
    assert everything["counts"] == {topics.interactions: {"wrong_key": 1}}
    assert redrive(pipeline)["redriven"] == 0

    found = {topic: pipeline.read(topic) for topic in topics.inputs}
    assert [len(each) for each in found.values()] == [2 * EVENTS + 2, 2 * EVENTS]
    sent_again = [origin for messages in found.values() for origin in origins(messages)]
    assert len(sent_again) == len(set(sent_again)) == 2 * EVENTS + 1
    for topic, messages in found.items():
        again = [each for each in messages if REDRIVEN_HEADER in dict(each.headers)]
        plain = [each._replace(headers=each.headers[:-1]) for each in again]
        assert sorted(plain, key=repr) == sorted(original[topic], key=repr)
        assert all(each.partition == partition(each.key, 2) for each in again if each.key)

    pipeline.environment["FORKS_JOIN__MAX_AHEAD"] = "1h"
    pipeline.run_until({topics.outcomes: EVENTS, topics.dead_letters: 2 * EVENTS + 2})
    predicted = [each["event_id"] for each in pipeline.read_json(topics.predictions)]
    assert sorted(predicted) == sorted(f"e{number}" for number in range(EVENTS))
    assert "no difference" in command(pipeline, "audit")

    failed_again = redrive(pipeline)
    assert (failed_again["redriven"], failed_again["failed_again"]) == (0, 1)
    assert redrive(pipeline, "--again")["redriven"] == 1
    assert redrive(pipeline, "--again")["redriven"] == 0
    [last] = [each for each in pipeline.read(topics.interactions) if each.key is None][2:]
    assert [name for name, _ in last.headers] == [REDRIVEN_HEADER]


DEFINITION = """
[stream]
name = "plays"
[stream.entities]
user_id = "/user_id"
video_id = "/video_id"
[stream.interactions]
topic = "interactions"
event_id = "/{event_id}"
time = "/timestamp"
[stream.labels]
topic = "watch-labels"
event_id = "/event_id"
time = "/timestamp"
value = "/watch_ratio"
[stream.target]
name = "watch_ratio"
above = 0.75
cap = 2.0
scale = 0.75
[join]
max_ahead = "1h"
early = "1d"
[features]
kind = "effects"
"""


def test_dead_letters_of_a_definition_that_was_mended_leave_nothing_to_the_audit(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, 2)
    config = tmp_path / "mine.toml"
    config.write_text(DEFINITION.format(event_id="id"))
    pipeline.options = ("--config", str(config))
    produce(pipeline, input_producer(bootstrap), 30)
    pipeline.run_until({pipeline.topics.dead_letters: 31})
    config.write_text(DEFINITION.format(event_id="event_id"))
    audit = ["audit", *pipeline.options, *options(pipeline)]
    assert "no dead letter, since the message is valid" in CliRunner().invoke(app, audit).stdout
    assert redrive(pipeline, *pipeline.options, "--reason", "invalid")["redriven"] in {30, 31}
    pipeline.run_until({pipeline.topics.outcomes: 30})
    predicted = [each["event_id"] for each in pipeline.read_json(pipeline.topics.predictions)]
    assert sorted(predicted) == sorted(f"e{number}" for number in range(30))
    assert "no difference" in command(pipeline, *audit[:3])


def test_a_second_redrive_ends_the_first(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    config = Config(kafka=pipeline.kafka)
    dead_letters = PartitionId(pipeline.topics.dead_letters, 0)
    message = InputMessage(pipeline.topics.interactions, 0, b"7", b"x", [], 1_000)
    with RedriveGroup(config) as first, RedriveGroup(config) as second:
        first.begin()
        first.send([message], {dead_letters: CommittedOffset(1, "one")})
        second.begin()
        assert second.committed([dead_letters]) == {0: CommittedOffset(1, "one")}
        with pytest.raises(FencedError, match="another redrive of group"):
            first.send([message], {dead_letters: CommittedOffset(2, "two")})
        second.send([message], {dead_letters: CommittedOffset(3, "three")})
        assert second.committed([dead_letters]) == {0: CommittedOffset(3, "three")}
    assert len(pipeline.read(pipeline.topics.interactions)) == 2
