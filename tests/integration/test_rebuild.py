"""`forks rebuild` over what a worker has written."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import polars as pl
import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.errors import ConfigError, StateError
from tests.integration.harness import TIMEOUT, Pipeline, invented_events, until

pytestmark = pytest.mark.xdist_group("rebuild")


def forks(pipeline: Pipeline, *command: str, **settings: str) -> Result:
    kafka = pipeline.kafka
    where = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group)
    return CliRunner().invoke(app, [*command, *where], env=settings)


def rebuild(pipeline: Pipeline, *options: str) -> Result:
    return forks(pipeline, "rebuild", *options)


class Halfway(NamedTuple):
    """A pipeline whose worker was stopped in the middle."""

    pipeline: Pipeline
    first: pl.DataFrame
    rest: pl.DataFrame


@pytest.fixture(scope="module")
def halfway(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Halfway:
    """For both tests: the first only reads, the second goes on from there."""
    folder = tmp_path_factory.mktemp("rebuild")
    pipeline = Pipeline(bootstrap, f"test-{uuid4().hex[:8]}-", folder, partitions=2)
    events = invented_events(folder, 2_000)
    half = len(events) // 2
    pipeline.produce_events(events[:half])
    pipeline.environment = {"FORKS_WORKER__BATCH": "50", "FORKS_CHECKPOINT__OUTCOMES": "200"}
    pipeline.run_until({pipeline.topics.outcomes: half}, instance=None)
    return Halfway(pipeline, events[:half], events[half:])


def test_unchanged_settings_give_the_very_bytes_of_the_snapshots_and_others_are_compared(
    halfway: Halfway,
) -> None:
    pipeline, events, _ = halfway
    same = rebuild(pipeline, "--json")
    assert same.exit_code == 0, same.output
    found: dict[str, Any] = json.loads(same.stdout)
    assert [rebuilt["same"] for rebuilt in found["partitions"]] == [True, True]
    assert sum(rebuilt["outcomes"] for rebuilt in found["partitions"]) == found["events"] == len(events)
    assert found["rebuilt"] == found["running"]
    outcomes = pipeline.read_json(pipeline.topics.outcomes)
    assert found["running"]["total"]["mistakes"] == sum(not o["correct"] for o in outcomes) / len(outcomes)

    other = json.loads(rebuild(pipeline, "--set", "learner.budget=40", "--json").stdout)
    assert other["changes"]["learner.budget"] == ["160", "40"]
    assert [rebuilt["same"] for rebuilt in other["partitions"]] == [None, None]
    assert other["running"] == found["running"]
    assert other["rebuilt"]["total"]["log_loss"] != found["running"]["total"]["log_loss"]
    text = rebuild(pipeline).stdout
    assert "identical to the group's snapshot" in text
    assert "not identical" not in text
    wrong = rebuild(pipeline, "--set", "preset=papier").exception
    assert isinstance(wrong, ConfigError)
    assert "learner.preset: Input should be 'practical' or 'paper' (got 'papier')" in str(wrong)


def test_a_group_goes_on_under_settings_that_were_installed_and_all_it_wrote_still_follows(
    halfway: Halfway, tmp_path: Path
) -> None:
    pipeline, first, rest = halfway
    outcomes, file = pipeline.topics.outcomes, str(tmp_path / "model.safetensors")
    assert not forks(pipeline, "checkpoint", "export", "--partition", "1", "--out", file).exception

    installed = rebuild(pipeline, "--set", "learner.budget=40", "--set", "memory=inf", "--install")
    assert installed.exit_code == 0, installed.exception
    text = "".join(line.strip() + "\n" for line in installed.stdout.splitlines())
    assert '[learner]\npreset = "practical"\nbudget = 40\nmemory = inf\n' in text
    now = {"FORKS_LEARNER__BUDGET": "40", "FORKS_LEARNER__MEMORY": "inf"}
    snapshot = json.loads(forks(pipeline, "checkpoint", "show", "--partition", "1", "--json").stdout)
    assert (snapshot["changes"]["budget"], snapshot["changes"]["memory"]) == ("40", "inf")
    exported_before = forks(pipeline, "checkpoint", "import", file, "--partition", "1", **now)
    assert "of an earlier settings epoch of this log, which ended" in refused(exported_before, StateError)

    pipeline.produce_events(rest)
    log = tmp_path / "outdated.log"
    assert pipeline.start_worker(None, log).wait(TIMEOUT) == 5
    logs = log.read_text()
    assert "forks rebuild --set learner.budget=160" in logs
    assert "--set learner.memory=10000.0" in logs

    pipeline.environment |= now
    with pipeline.follow(outcomes) as follower:
        killed = pipeline.start_worker()
        until(partial(follower.reached, len(first) + 100), "outcomes under other settings", killed)
        killed.kill()
        killed.wait()
        with pipeline.worker() as worker:
            until(partial(follower.reached, len(first) + len(rest)), "all outcomes", worker)
            back = rebuild(pipeline, "--set", "budget=160", "--install")
            assert "stop every worker first" in refused(back, StateError)
    audited = forks(pipeline, "audit", "--json", **now)
    assert audited.exit_code == 0, audited.output
    partitions = json.loads(audited.stdout)["partitions"]
    assert [part["earlier_epochs"] for part in partitions] == [1, 1]
    derived = sum(part["checked"]["predictions derived again"] for part in partitions)
    assert derived == len(first) + len(rest)
    assert [part["checked"]["snapshots compared with the model"] for part in partitions] == [1, 1]


def refused(result: Result, error: type[Exception]) -> str:
    assert isinstance(result.exception, error), result.output
    return str(result.exception)
