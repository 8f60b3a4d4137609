"""What the page on streams of one's own says to type, from a sample of events to a report."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.loader import load
from pipeline.config.topics import topics_of
from tests.integration.harness import Pipeline
from tests.integration.test_stream import command

PAGE = Path(__file__).parents[2] / "docs" / "own-stream.md"
EVENTS = 2_000


def sample(path: Path) -> None:
    chance, lines = random.Random(1), list[str]()
    for number in range(EVENTS):
        courier, km = chance.randrange(60), round(20.0 * chance.random(), 2)
        at = 1_772_366_400_000 + 30_000 * number
        order = {"order": f"o{number}", "courier": f"c{courier}", "restaurant": f"r{chance.randrange(40)}"}
        cuisine = chance.choice(["thai", "pizza", "sushi"])
        late = km / 40 + courier / 150 + 0.2 * (cuisine == "sushi")
        known = {"cuisine": cuisine, "km": km, "at": at, "arrived": at + 1_200_000}
        lines.append(json.dumps(order | known | {"on_time": chance.random() > late}))
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.slow
def test_a_sample_becomes_a_running_pipeline_as_it_is_drafted(
    bootstrap: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sample(Path("orders.jsonl"))
    text = PAGE.read_text()
    [drafting] = re.findall(r"`forks (stream init orders\.jsonl [^`]*)`", text)
    assert CliRunner().invoke(app, drafting.split()).exit_code == 0
    drafted = Path("orders.toml").read_text().splitlines()
    for line in ("[features]", "hour_of_day = ", "cuisine = ", "km = "):
        assert any(each.startswith(line) for each in drafted)
    [written] = re.findall(r"`echo '([^']*)' > forks\.toml`", text)
    file = Path("forks.toml")
    file.write_text(f"{written}\n")
    topics = topics_of(load(file, {"kafka.prefix": topic_prefix}))
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, 1, topics=topics)
    pipeline.options = ("--config", str(file))
    command(pipeline, "replay", "orders.jsonl")
    assert "orders: everything fits" in command(pipeline, "stream", "check")
    pipeline.run_until({pipeline.topics.outcomes: EVENTS})
    report = json.loads(command(pipeline, "report", "--json"))
    assert report["labelled"] == EVENTS
    assert report["mistakes"] < report["running_means"] < 0.5
    assert "no difference" in command(pipeline, "audit", "--group", pipeline.kafka.group)
    evaluated = CliRunner().invoke(app, ["evaluate", "orders.jsonl", "--json"])
    assert evaluated.exit_code == 0, evaluated.output
    found = json.loads(evaluated.stdout)
    assert {name: found[name] for name in report} == report
    assert (found["rows"], found["skipped"]) == (EVENTS, {})
