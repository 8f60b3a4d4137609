"""Workers under a policy, in front of a real Kafka: what is asked for is written once, and audited."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.config.settings import Config, Kafka
from pipeline.config.topics import topics_of
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.topics import create
from tests.integration.harness import Message, Pipeline, invented_events, until

ADAPTIVE = {"FORKS_LABELS__POLICY": "adaptive", "FORKS_LABELS__RATE": "0.3"}


def command(name: str, pipeline: Pipeline, *options: str, **settings: str) -> Result:
    kafka = pipeline.kafka
    where = ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix]
    group = ["--group", kafka.group] if name == "audit" else []
    return CliRunner().invoke(app, [name, *options, *where, *group], env=settings)


@pytest.mark.slow
def test_a_policy_s_requests_are_written_once_whoever_is_killed_and_audited(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    pipeline.environment = {**ADAPTIVE, "FORKS_WORKER__BATCH": "100", "FORKS_CHECKPOINT__OUTCOMES": "300"}
    missing = command("topics", pipeline, "check", **ADAPTIVE)
    assert missing.exit_code == 4
    assert "label-requests: the topic does not exist; labels.policy needs it: create it" in missing.stdout
    assert command("topics", pipeline, "check").exit_code == 0, "who asks for nothing needs no such topic"
    config = Config.model_validate({"kafka": pipeline.kafka, "labels": {"policy": "adaptive"}})
    topics = topics_of(config)
    assert create(Admin(Kafka(bootstrap=bootstrap)), topics, 2, 1) == [topics.label_requests]

    events = invented_events(tmp_path, 3_000)
    pipeline.produce_events(events)
    with pipeline.follow(topics.outcomes) as follower:
        dies = pipeline.start_worker()
        try:
            until(partial(follower.reached, 500), "500 outcomes", dies)
        finally:
            dies.kill()
            dies.wait()
        with pipeline.worker() as worker:
            until(partial(follower.reached, len(events)), "all outcomes", worker)

    asked = [each for each in pipeline.read_json(topics.predictions) if each["asked"]]
    requests = pipeline.read_json(topics.label_requests)
    assert [each["event_id"] for each in requests] == [each["event_id"] for each in asked]
    assert 0.3 * len(events) - 1_001 < len(requests) < len(events)
    clean = command("audit", pipeline, "--json", **ADAPTIVE)
    assert clean.exit_code == 0, clean.output
    checked = [part["checked"] for part in json.loads(clean.stdout)["partitions"]]
    assert sum(part["decisions to ask for a label derived again"] for part in checked) == len(events)
    assert sum(part["label requests compared with their prediction"] for part in checked) == len(requests)

    stray = pipeline.read(topics.label_requests)[0]
    pipeline.produce([Message(topics.label_requests, stray.key, stray.value, stray.timestamp)])
    sabotaged = command("audit", pipeline, "--from-snapshot", **ADAPTIVE)
    assert sabotaged.exit_code == 1, sabotaged.output
    assert f"first difference: {topics.label_requests}, partition {stray.partition}" in sabotaged.stdout

    inspected = command("inspect", pipeline, "label-requests", "--from", "0", "--limit", "1")
    assert inspected.exit_code == 0, inspected.output
    assert requests[0]["event_id"] in inspected.stdout
    refused = command("audit", pipeline)
    assert "labels.policy is None, was 'adaptive'" in str(refused.exception)
