"""Public files as they are: the draft of each runs without an edit, and predicts better than a constant."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from shutil import copyfile
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


@pytest.mark.slow
def test_the_page_on_streams_begins_with_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copyfile(data("files") / "bike_hour.csv", "bike_hour.csv")
    page = (Path(__file__).parents[4] / "docs" / "streams.md").read_text()
    drafted, figures = re.findall(r"^```(?:toml)?\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[:2]
    run_ = CliRunner().invoke
    assert run_(app, ["stream", "init", "bike_hour.csv", "--out", "bike.toml"]).exit_code == 0
    draft = Path("bike.toml").read_text()
    lines = iter(draft.splitlines())
    assert all(line in lines for line in drafted.splitlines()), "other lines, or in another order"
    Path("forks.toml").write_text('stream = "bike.toml"\n')
    printed = [line.split() for line in run_(app, ["evaluate", "bike_hour.csv"]).stdout.splitlines()]
    assert all(line.split() in printed for line in figures.splitlines())
    for name in ("workingday", "yr"):
        draft = draft.replace(f'{name} = {{ kind = "number"', f'{name} = {{ kind = "category"')
    Path("bike.toml").write_text(draft)
    [edited] = re.findall(r"make it ([0-9.]+)\.", page)
    found = json.loads(run_(app, ["evaluate", "bike_hour.csv", "--json"]).stdout)
    assert f"{found['regression']['mae']:.2f}" == edited
