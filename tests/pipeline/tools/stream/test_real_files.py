"""Public files as they are: the draft of each runs without an edit, and predicts better than a constant."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from tests.conftest import data


def run(name: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the draft for a file, and what an evaluation finds with it."""
    file, drafted, config = data("files") / name, folder / "stream.toml", folder / "forks.toml"
    made = CliRunner().invoke(app, ["stream", "init", str(file), "--out", str(drafted)])
    assert made.exit_code == 0, made.output
    config.write_text(f'stream = "{drafted}"\n')
    done = CliRunner().invoke(app, ["evaluate", str(file), "--config", str(config), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["advice"] == [], "there is no fault in these files"
    return tomllib.loads(drafted.read_text()), found


@pytest.mark.parametrize(
    ("name", "label", "events"),
    [("criteo.tsv", "/column_1", 7_200), ("avazu.csv", "/click", 8_087), ("elec2.csv", "/column_9", 45_312)],
)
def test_classes(name: str, label: str, events: int, tmp_path: Path) -> None:
    drafted, found = run(name, tmp_path)
    assert drafted["labels"]["value"] == label
    assert (found["labelled"], found["losses"]["lost"]) == (events, 0)
    assert found["mistakes"] < found["majority"]
    assert found["auc"] > 0.65


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "label", "lost"), [("bike_hour.csv", "/cnt", 0), ("deliveries.txt", "/Time_taken(min)", 1)]
)
def test_numbers(name: str, label: str, lost: int, tmp_path: Path) -> None:
    drafted, found = run(name, tmp_path)
    assert (drafted["labels"]["value"], drafted["target"]["kind"]) == (label, "regression")
    assert found["losses"]["lost"] == lost
    assert found["regression"]["mae"] < found["regression"]["running_mean"]
    assert not {"/casual", "/registered"} & {each.get("field") for each in drafted["features"].values()}
