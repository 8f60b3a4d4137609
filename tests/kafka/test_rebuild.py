"""`forks rebuild` over what a worker has written."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.errors import ConfigError, StateError
from tests.kafka.harness import DEADLINE, Pipeline, invented_events, until


def forks(pipeline: Pipeline, *command: str, **settings: str) -> Result:
    kafka = pipeline.kafka
    where = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group)
    return CliRunner().invoke(app, [*command, *where], env=settings)


def rebuild(pipeline: Pipeline, *options: str) -> Result:
    return forks(pipeline, "rebuild", *options)


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


def test_a_group_goes_on_under_settings_that_were_installed_and_all_it_wrote_still_follows(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    outcomes, file = pipeline.topics.outcomes, str(tmp_path / "model.safetensors")
    events = invented_events(tmp_path, 1_000)
    half = len(events) // 2
    other = ("--set", "learner.budget=40", "--set", "memory=inf", "--install")
    new_settings = {"FORKS_LEARNER__BUDGET": "40", "FORKS_LEARNER__MEMORY": "inf"}

    pipeline.produce_events(events[:half])
    with pipeline.worker(None) as worker, pipeline.follow(outcomes) as follower:
        until(partial(follower.reached, half), "the first half", worker)
        assert "stop every worker first" in refused(rebuild(pipeline, *other), StateError)
    assert "nothing to install" in refused(rebuild(pipeline, "--install"), ConfigError)
    assert not forks(pipeline, "checkpoint", "export", "--partition", "1", "--out", file).exception

    installed = rebuild(pipeline, *other)
    assert installed.exit_code == 0, installed.exception
    text = "".join(line.strip() + "\n" for line in installed.stdout.splitlines())
    assert '[learner]\npreset = "practical"\nbudget = 40\nmemory = inf\n' in text
    shown = json.loads(forks(pipeline, "checkpoint", "show", "--partition", "1", "--json").stdout)
    assert (shown["changes"]["budget"], shown["changes"]["memory"]) == ("40", "inf")
    earlier = refused(
        forks(pipeline, "checkpoint", "import", file, "--partition", "1", **new_settings), StateError
    )
    assert "of an era of this log that ended" in earlier

    pipeline.produce_events(events[half:])
    outdated = pipeline.start_worker(None)
    assert outdated.wait(DEADLINE) == 5
    said = pipeline.log_of(None).read_text()
    assert "forks rebuild --set learner.budget=160" in said
    assert "--set learner.memory=10000.0" in said

    pipeline.environment = {"FORKS_WORKER__BATCH": "50", "FORKS_CHECKPOINT__OUTCOMES": "200", **new_settings}
    with pipeline.follow(outcomes) as follower:
        killed = pipeline.start_worker()
        until(partial(follower.reached, half + 100), "outcomes under other settings", killed)
        killed.kill()
        killed.wait()
    pipeline.run_until({outcomes: len(events)})
    audited = forks(pipeline, "audit", "--json", **new_settings)
    assert audited.exit_code == 0, audited.output
    partitions = json.loads(audited.stdout)["partitions"]
    assert [part["earlier_eras"] for part in partitions] == [1, 1]
    assert sum(part["checked"]["predictions derived again"] for part in partitions) == len(events)
    same = json.loads(forks(pipeline, "rebuild", "--json", **new_settings).stdout)
    assert [fold["same"] for fold in same["partitions"]] == [True, True]


def test_nothing_is_installed_where_a_partition_has_no_state_yet(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    said = refused(rebuild(pipeline, "--set", "budget=40", "--install"), StateError)
    assert "nothing was committed for partition 0 yet" in said


def refused(result: Result, error: type[Exception]) -> str:
    assert isinstance(result.exception, error), result.output
    return str(result.exception)
