"""Challengers beside real workers: killed, audited, and one of them promoted."""

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
from tests.integration.test_rebuild import forks, refused

pytestmark = [pytest.mark.xdist_group("challengers"), pytest.mark.slow]
WIDER = {"learner": "forks", "budget": 60, "cycle": 200}
LINEAR = {"learner": "arow"}
APART = {"FORKS_SHARING__INTERVAL": "off"}
"""What partitions learn from one another depends on timing, and scores are compared here."""
BEFORE = {"FORKS_CHALLENGERS": json.dumps({"wider": WIDER, "linear": LINEAR})}
AFTER = {
    "FORKS_LEARNER": json.dumps({"budget": 60, "cycle": 200}),
    "FORKS_CHALLENGERS": json.dumps({"former": {"learner": "forks"}, "linear": LINEAR}),
}


class Halfway(NamedTuple):
    """A pipeline whose worker was killed on the way to the middle, and stopped there."""

    pipeline: Pipeline
    first: int
    rest: pl.DataFrame


@pytest.fixture(scope="module")
def halfway(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Halfway:
    folder = tmp_path_factory.mktemp("challengers")
    pipeline = Pipeline(bootstrap, f"test-{uuid4().hex[:8]}-", folder, partitions=2)
    events = invented_events(folder, 2_000)
    half = len(events) // 2
    pipeline.produce_events(events[:half])
    pipeline.environment = BEFORE | APART | {"FORKS_WORKER__BATCH": "50", "FORKS_CHECKPOINT__OUTCOMES": "200"}
    with pipeline.follow(pipeline.topics.outcomes) as follower:
        killed = pipeline.start_worker(None)
        until(partial(follower.reached, half // 3), "outcomes", killed)
        killed.kill()
        killed.wait()
    pipeline.run_until({pipeline.topics.outcomes: half}, instance=None)
    return Halfway(pipeline, half, events[half:])


def audited(pipeline: Pipeline, **settings: str) -> list[dict[str, Any]]:
    result = forks(pipeline, "audit", "--json", **settings)
    assert result.exit_code == 0, result.output
    partitions: list[dict[str, Any]] = json.loads(result.stdout)["partitions"]
    return partitions


def compared(pipeline: Pipeline, name: str) -> list[dict[str, Any]]:
    """What the report says, of which mistakes are counted once more."""
    found = json.loads(reported(pipeline).stdout)["comparison"]
    outcomes = [each for each in pipeline.read_json(pipeline.topics.outcomes) if name in each["challengers"]]
    assert found["events"] == len(outcomes) > 0
    learners: list[dict[str, Any]] = found["contenders"]
    for each in learners:
        scores = [
            outcome["score"] if each["name"] == "champion" else outcome["challengers"][each["name"]]
            for outcome in outcomes
        ]
        wrong = sum((score > 0) != outcome["label"] for score, outcome in zip(scores, outcomes, strict=True))
        assert each["mistakes"] == wrong / len(outcomes)
    return learners


def reported(pipeline: Pipeline) -> Result:
    kafka = pipeline.kafka
    where = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix)
    result = CliRunner().invoke(app, ["report", "--json", *where])
    assert result.exit_code == 0, result.output
    return result


def test_predictions_of_challengers_survive_a_killed_worker(halfway: Halfway) -> None:
    pipeline, count, _ = halfway
    outcomes = pipeline.read_json(pipeline.topics.outcomes)
    assert len(outcomes) == count
    assert {tuple(outcome["challengers"]) for outcome in outcomes} == {("linear", "wider")}
    derived = sum(part["checked"]["predictions derived again"] for part in audited(pipeline, **BEFORE))
    assert derived == count
    names = [each["name"] for each in compared(pipeline, "wider")]
    assert names == ["champion", "linear", "wider"]
    same = forks(pipeline, "rebuild", "--json", **BEFORE)
    assert [rebuilt["same"] for rebuilt in json.loads(same.stdout)["partitions"]] == [True, True]


def test_a_promoted_challenger_is_the_champion_from_there_on(halfway: Halfway, tmp_path: Path) -> None:
    pipeline, first, rest = halfway
    outcomes = pipeline.topics.outcomes
    log = pipeline.log_of(None)
    begin = log.stat().st_size
    with pipeline.worker(None) as worker:
        until(lambda: b"assigned" in log.read_bytes()[begin:], "its partitions", worker)
        assert "there are members" in refused(forks(pipeline, "promote", "wider", **BEFORE), StateError)
    assert "no challenger 'widest'" in refused(forks(pipeline, "promote", "widest", **BEFORE), ConfigError)
    assert "is a rival (arow)" in refused(forks(pipeline, "promote", "linear", **BEFORE), ConfigError)
    assert "other settings" in refused(forks(pipeline, "promote", "former", **AFTER), StateError)

    done = forks(pipeline, "promote", "wider", **BEFORE)
    assert done.exit_code == 0, done.exception
    text = "".join(line.strip() + "\n" for line in done.stdout.splitlines())
    assert '[learner]\npreset = "practical"\nbudget = 60\ncycle = 200\n' in text
    assert '[challengers.former]\nlearner = "forks"\npreset = "practical"\n' in text

    pipeline.produce_events(rest)
    outdated = tmp_path / "outdated.log"
    assert pipeline.start_worker(None, outdated).wait(TIMEOUT) == 5
    assert "challengers.wider.learner" in outdated.read_text()

    pipeline.environment |= AFTER
    pipeline.run_until({outcomes: first + len(rest)}, instance=None)
    partitions = audited(pipeline, **AFTER)
    assert [part["earlier_epochs"] for part in partitions] == [1, 1]
    derived = sum(part["checked"]["predictions derived again"] for part in partitions)
    assert derived == first + len(rest)

    [champion, former, linear] = compared(pipeline, "former")
    assert champion["log_loss"] is not None
    assert former["log_loss"] is not None
    assert linear["log_loss"] is None

    alone = Pipeline(pipeline.kafka.bootstrap, f"{pipeline.kafka.prefix}alone-", tmp_path, partitions=2)
    alone.environment = {"FORKS_LEARNER": AFTER["FORKS_LEARNER"], **APART}
    alone.produce_events(invented_events(tmp_path, 2_000))
    alone.run_until({alone.topics.outcomes: first + len(rest)}, instance=None)
    always = {each["event_id"]: each for each in alone.read_json(alone.topics.outcomes)}
    for outcome in pipeline.read_json(outcomes):
        scores = outcome["challengers"]
        score = outcome["score"] if "former" in scores else scores["wider"]
        assert score == always[outcome["event_id"]]["score"]
