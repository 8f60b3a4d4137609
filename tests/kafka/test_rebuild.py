"""`forks rebuild` over what a worker has written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.errors import ConfigError
from tests.kafka.harness import Pipeline, invented_events


def rebuild(pipeline: Pipeline, *options: str) -> Result:
    kafka = pipeline.kafka
    where = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group)
    return CliRunner().invoke(app, ["rebuild", *where, *options])


def test_unchanged_settings_give_the_very_bytes_of_the_snapshots_and_others_are_compared(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    events = invented_events(tmp_path, 1_500)
    pipeline.produce_events(events)
    pipeline.environment["FORKS_CHECKPOINT__OUTCOMES"] = "500"
    pipeline.run_until({pipeline.topics.outcomes: len(events)})

    same = rebuild(pipeline, "--json")
    assert same.exit_code == 0, same.output
    found: dict[str, Any] = json.loads(same.stdout)
    assert [fold["same"] for fold in found["partitions"]] == [True, True]
    assert sum(fold["outcomes"] for fold in found["partitions"]) == found["events"] == len(events)
    assert found["rebuilt"] == found["running"]
    outcomes = pipeline.read_json(pipeline.topics.outcomes)
    assert found["running"]["total"]["mistakes"] == sum(not o["correct"] for o in outcomes) / len(outcomes)

    other = json.loads(rebuild(pipeline, "--set", "learner.budget=40", "--json").stdout)
    assert other["changes"]["learner.budget"] == ["160", "40"]
    assert [fold["same"] for fold in other["partitions"]] == [None, None]
    assert other["running"] == found["running"]
    assert other["rebuilt"]["total"]["log_loss"] != found["running"]["total"]["log_loss"]
    assert "the very bytes" in rebuild(pipeline).stdout
    wrong = rebuild(pipeline, "--set", "preset=papier").exception
    assert isinstance(wrong, ConfigError)
    assert "learner.preset: Input should be 'practical' or 'paper' (got 'papier')" in str(wrong)
