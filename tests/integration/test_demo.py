"""The whole path as a user sees it: `forks demo`, on real KuaiRec rows."""

from __future__ import annotations

import json
import os
import random
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.settings import Learner
from pipeline.features.tables import Tables
from pipeline.model.learner_settings import learner_settings
from pipeline.sources.kuairec import read_events, tables_beside
from pipeline.sources.synth.files import write_files
from pipeline.sources.synth.size import Size
from tests.integration.harness import FORKS, TIMEOUT, Pipeline
from tests.integration.test_slates import DEFINITION as SLATES
from tests.support.offline import offline, pairs_of

OFFLINE = 8_000
"""Predictions that a loop without Kafka makes, too. It is slow, and the demo's audit derives all of them."""


@pytest.mark.slow
def test_demo_on_real_rows(bootstrap: str, kuairec: Path, tmp_path: Path) -> None:
    """Nothing is lost or made up, mistakes are few, and scores are those of a loop without Kafka."""
    done = subprocess.run(
        [*FORKS, "demo", "--data", kuairec, "--json"],
        capture_output=True,
        text=True,
        timeout=4 * TIMEOUT,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"FORKS_KAFKA__BOOTSTRAP": bootstrap},
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    events = read_events(kuairec)
    assert figures["events"] == figures["predictions"] == figures["outcomes"] == len(events)
    assert figures["labelled"] == len(events)
    assert figures["dead_letters"] == 0
    assert figures["differences"] == []
    assert 0 < figures["killed_at"] < len(events)
    assert figures["mistakes"] <= 0.269
    assert figures["mistakes"] < figures["running_means"] < figures["majority"]
    assert figures["auc"] > figures["running_means_auc"]
    assert "CC BY-SA 4.0" in (tmp_path / "forks-data" / "demo.svg").read_text()

    pipeline = Pipeline(bootstrap, figures["prefix"], tmp_path)
    committed = [
        (prediction["event_id"], float.hex(prediction["score"]))
        for prediction in pipeline.read_json(pipeline.topics.predictions)
    ]
    pairs = pairs_of(kuairec)[:OFFLINE]
    found = tables_beside(kuairec)
    tables = Tables(found["users"], found["tags"], found["daily"])
    assert tables.columns == 212
    assert tables.tags is not None
    scores, _ = offline(pairs, learner_settings(Learner(), tables.columns), tables, tables.tags.lists)
    assert committed[:OFFLINE] == [
        (pair.interaction.event_id, float.hex(score)) for pair, score in zip(pairs, scores, strict=True)
    ]


OTHER = """
[stream]
name = "other"
[stream.interactions]
topic = "a"
event_id = "/id"
time = "/t"
[stream.labels]
topic = "b"
event_id = "/id"
time = "/t"
value = "/v"
[stream.target]
name = "v"
above = 0.5
cap = 1.0
scale = 0.5
"""


def demo(bootstrap: str, *arguments: object) -> dict[str, Any]:
    """Run the demo in this process; return its figures."""
    environment = {"FORKS_KAFKA__BOOTSTRAP": bootstrap}
    result = CliRunner().invoke(app, ["demo", *map(str, arguments), "--json"], env=environment)
    assert result.exit_code == 0, (result.exception, result.output)
    assert "recovered: the next prediction was committed" in result.stderr
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    assert 0 < found["killed_at"] < found["outcomes"]
    assert found["differences"] == []
    return found


@pytest.mark.slow
def test_demo_of_a_table_of_ones_own(bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the folder's configuration says; what a row cannot give is counted and no failure."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, Size(events=2_000, users=40, videos=30, days=2), stream="deliveries")
    table = Path("deliveries.jsonl")
    rows = table.read_text().splitlines()
    unusable = json.dumps(json.loads(rows[0]) | {"ordered_at": None})
    table.write_text("\n".join([*rows, rows[7], unusable]) + "\n")
    Path("forks.toml").write_text(OTHER)
    found = demo(bootstrap, "--stream", "deliveries.toml", "--data", table, "--out", "mine.svg")
    assert found["events"] == found["labelled"] == 2_000
    assert found["counters"]["interactions"] == 2_001
    assert found["regression"]["mae"] < found["regression"]["running_mean"]
    assert "Data: deliveries.jsonl" in Path("mine.svg").read_text()


@pytest.mark.slow
def test_demo_of_invented_deliveries(bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pipeline.sources.synth.size.Size", partial(Size, events=1_000, users=30, days=1))
    found = demo(bootstrap, "--stream", "deliveries")
    assert found["events"] == found["labelled"] == 1_000
    assert found["regression"]["mae"] < found["regression"]["running_mean"]
    assert "Invented data" in Path("forks-data/demo.svg").read_text()


@pytest.mark.slow
def test_demo_of_a_table_of_slates(bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    chance, rows = random.Random(2), ["shelf,user,at,phone,product,price,clicked"]
    for shelf in range(400):
        for product in chance.sample(range(30), 3):
            clicked = int(chance.random() < (30 - product) / 30)
            rows.append(f"s{shelf},u{shelf % 20},{1_000 * shelf},true,{product},{1.5 * product},{clicked}")
    Path("shown.csv").write_text("\n".join(rows) + "\n")
    Path("shown.toml").write_text(
        SLATES.split("[challengers")[0].replace("stream.", "").replace("[stream]", "")
    )
    found = demo(bootstrap, "--stream", "shown.toml", "--data", Path("shown.csv"))
    assert found["counters"]["interactions"] == 400
    assert found["labelled"] == found["counters"]["items"] == found["items"] == 1_200
    assert found["ranking"]["slates"] == 400


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--stream", "nowhere.toml"), "--stream nowhere.toml: there is no such file"),
        (("--stream", "other.toml"), "add --data TABLE"),
        (("--stream", "deliveries", "--data", "t.csv"), "--data t.csv: deliveries are invented"),
        (("--stream", "bad.toml", "--data", "t.csv"), "bad.toml: "),
        (("--stream", "avro.toml", "--data", "t.csv"), "the demo starts no schema registry"),
        (("--stream", "other.toml", "--data", "nowhere.csv"), "nowhere.csv: there is no such file"),
        (("--stream", "other.toml", "--data", "t.csv"), "t.csv: none of the 1 rows can be used: 1 no time"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_broker_starts(
    options: tuple[str, ...], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = OTHER.replace("stream.", "").replace("[stream]", "")
    Path("other.toml").write_text(text)
    Path("bad.toml").write_text(text.replace("above", "over"))
    Path("avro.toml").write_text(text.replace('topic = "a"', 'topic = "a"\nformat = "avro"'))
    Path("t.csv").write_text("id,t,v\n1,,0\n")
    result = CliRunner().invoke(app, ["demo", *options])
    assert reason in str(result.exception)
    assert "starting Apache Kafka" not in result.stderr
