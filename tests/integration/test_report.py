"""`forks report` over what workers and others have written."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.errors import BrokerError, TopicError
from pipeline.tools.report import summarize
from tests.integration.harness import Message, Pipeline, invented_events
from tests.support.forked import run_command


def forks_report(pipeline: Pipeline, *options: str) -> subprocess.CompletedProcess[str]:
    kafka = pipeline.kafka
    where = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix)
    return run_command("report", *where, *options, folder=pipeline.folder)


def test_a_run_is_summed_up_as_its_records_say(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    events = invented_events(tmp_path, 2_000)
    pipeline.produce_events(events)
    pipeline.produce(
        [
            Message(pipeline.topics.labels, b"7", b"no JSON"),
            Message(pipeline.topics.labels, b"8", None),
        ]
    )
    pipeline.run_until({pipeline.topics.outcomes: len(events), pipeline.topics.dead_letters: 2})

    answer = forks_report(pipeline, "--json", "--window", "500", "--out", "run.svg", "--note", "invented")

    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    outcomes = pipeline.read_json(pipeline.topics.outcomes)
    watched = [outcome["label"] for outcome in outcomes]
    assert found["events"] == found["predictions"] == found["outcomes"] == found["labelled"] == len(events)
    assert found["mistakes"] == pytest.approx(sum(not o["correct"] for o in outcomes) / len(outcomes))
    assert found["log_loss"] == pytest.approx(sum(o["loss"] for o in outcomes) / len(outcomes))
    assert found["majority"] == pytest.approx(min(sum(watched), len(watched) - sum(watched)) / len(watched))
    assert found["counters"]["undecodable"] == found["dead_letters"] == 2
    assert found["differences"] == []
    assert [window["events"] for window in found["windows"]] == [500, 500, 500, len(events) - 1_500]
    assert (tmp_path / "run.svg").read_bytes().startswith(b"<?xml")


def test_records_that_no_state_record_covers_are_reported(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    pipeline.produce(
        [
            Message(pipeline.topics.predictions, b"7", b"{}"),
            Message(pipeline.topics.dead_letters, None, b""),
        ]
    )
    assert summarize(pipeline.kafka).differences == [
        "partition 0: predictions: the topics hold 1, the state record counts 0",
        "partition 0: unknown: the topics hold 1, the state record counts 0",
    ]


def test_a_foreign_record_among_the_outcomes_is_named(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    pipeline.produce([Message(pipeline.topics.outcomes, b"7", b'{"sequence": -1}')])
    answer = forks_report(pipeline)
    assert answer.returncode == 5
    assert f"{pipeline.topics.outcomes}, partition 0, offset 0" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_an_empty_run_is_no_error(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    Pipeline(bootstrap, topic_prefix, tmp_path)
    picture = tmp_path / "run.svg"
    command = ["report", "--bootstrap", bootstrap, "--prefix", topic_prefix, "--out", str(picture)]
    answer = CliRunner().invoke(app, command)
    assert answer.exit_code == 0, answer.output
    assert "Nothing was written yet" in answer.stdout
    assert "run.svg was not drawn" in answer.stderr
    assert not picture.exists()


def test_missing_topics_are_named(bootstrap: str, topic_prefix: str) -> None:
    with pytest.raises(TopicError, match=f"no topic {Topics(topic_prefix).predictions} and no topic"):
        summarize(Kafka(bootstrap=bootstrap, prefix=topic_prefix))


def test_a_broker_that_does_not_answer_is_named() -> None:
    with pytest.raises(BrokerError, match=r"127\.0\.0\.1:1"):
        summarize(Kafka(bootstrap="127.0.0.1:1"))
