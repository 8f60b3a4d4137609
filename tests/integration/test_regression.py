"""A stream whose labels are numbers, from invented deliveries to a report, over kills."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from tests.integration.test_stream import command, kill_after, pipeline_of

EVENTS = 4_000
CHALLENGED = """
[worker]
batch = 200
[checkpoint]
outcomes = 500
[challengers.linear]
learner = "forks"
rank = 2
[sharing]
interval = 20
"""


@pytest.mark.slow
def test_numbers_are_predicted_over_kills(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    arguments = ["synth", "--stream", "deliveries", "--events", str(EVENTS), "--out", str(data)]
    made = CliRunner().invoke(app, [*arguments, "--users", "60", "--videos", "40", "--days", "2"])
    assert made.exit_code == 0, made.output
    definition = f'stream = "{data / "deliveries.toml"}"  # deliveries\n{CHALLENGED}'
    pipeline = pipeline_of(bootstrap, topic_prefix, tmp_path / "run", definition)
    command(pipeline, "replay", str(data / "deliveries.jsonl"))
    assert "above 30" in command(pipeline, "stream", "check")
    kill_after(pipeline, (900, 2_100))
    pipeline.run_until({pipeline.topics.outcomes: EVENTS})
    outcomes = pipeline.read_json(pipeline.topics.outcomes)
    assert all(-30.0 <= each["label"] <= 90.0 and each["correct"] is None for each in outcomes)
    errors = [abs(each["predicted"] - each["label"]) for each in outcomes]
    report = json.loads(command(pipeline, "report", "--json"))
    figures = report["regression"]
    assert figures["mae"] == pytest.approx(sum(errors) / EVENTS)
    assert figures["mae"] < 0.8 * figures["running_mean"]
    assert figures["mae"] < figures["running_means"]
    assert 0.7 < figures["coverage"] < 0.9
    assert (report["mistakes"], report["windows"], report["differences"]) == (None, [], [])
    assert [each["name"] for each in figures["contenders"]] == ["champion", "linear"]
    assert len(pipeline.read_json(pipeline.topics.shared)) > EVENTS // 40
    shown = command(pipeline, "report", "--out", str(tmp_path / "errors.svg"))
    assert "running means of courier and restaurant" in shown
    assert (tmp_path / "errors.svg").exists()
    group = ("--group", pipeline.kafka.group)
    assert "no difference" in command(pipeline, "audit", *group)
    assert "identical" in command(pipeline, "rebuild", *group)
    assert f"{outcomes[-1]['predicted']:.4g}" in command(pipeline, "inspect", "outcomes", "--limit", "2")
