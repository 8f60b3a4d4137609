"""`forks evaluate` on a stream's table: what it finds is what a worker writes after a replay, bit for bit."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.loader import load
from pipeline.config.topics import topics_of
from pipeline.model.factory import ModelFactory
from pipeline.sources.rows import read_rows
from pipeline.tools.evaluate.table_run import batches
from tests.integration.harness import Pipeline
from tests.integration.test_slates import DEFINITION as SLATES
from tests.integration.test_stream import command, kill_after

EVENTS = 3_000
SETTINGS = """
[worker]
batch = 300
[join]
window = "50m"
max_in_memory = 20
[challengers.linear]
learner = "forks"
rank = 2
[labels]
policy = "random"
rate = 0.5
"""
"""Some labels come too late, most predictions wait in the file, and half of the labels are learned."""


@pytest.mark.slow
def test_a_table_gives_what_its_replay_gives(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    arguments = ["synth", "--stream", "deliveries", "--events", str(EVENTS), "--out", str(tmp_path)]
    made = CliRunner().invoke(app, [*arguments, "--users", "60", "--videos", "40", "--days", "2"])
    assert made.exit_code == 0, made.output
    table, file = tmp_path / "deliveries.jsonl", tmp_path / "forks.toml"
    rows = table.read_text().splitlines()
    unusable = json.dumps(json.loads(rows[0]) | {"ordered_at": None})
    table.write_text("\n".join([*rows, rows[7], unusable]) + "\n")
    file.write_text(f'stream = "{tmp_path / "deliveries.toml"}"\n{SETTINGS}')

    evaluated = CliRunner().invoke(app, ["evaluate", str(table), "--config", str(file), "--json"])
    assert evaluated.exit_code == 0, evaluated.output
    found = json.loads(evaluated.stdout)
    assert (found["rows"], found["skipped"]) == (EVENTS + 2, {"no_time": 1})
    assert found["labelled"] > found["expired"] >= found["counters"]["late"] > 0
    assert found["counters"]["duplicate_interactions"] == 1

    config = load(file, {"kafka.prefix": topic_prefix})
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, topics=topics_of(config))
    pipeline.options = ("--config", str(file))
    command(pipeline, "replay", str(table))
    topics = pipeline.topics
    pipeline.run_until({topics.outcomes: EVENTS, topics.dead_letters: found["dead_letters"]})
    report = json.loads(command(pipeline, "report", "--json"))
    assert {name: found[name] for name in report} == report

    written = list(batches(read_rows(table, config.stream, 0), config, ModelFactory(config)))
    for topic, values in (
        (topics.predictions, [each.records.predictions.values for each in written]),
        (topics.outcomes, [each.records.outcomes.values for each in written]),
        (topics.label_requests, [each.records.requests.values for each in written]),
    ):
        assert [each.value for each in pipeline.read(topic)] == [value for part in values for value in part]


@pytest.mark.slow
def test_a_table_of_slates_gives_what_its_replay_gives(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    chance, table, shelves = random.Random(3), tmp_path / "shown.csv", 400
    lines = ["shelf,user,at,known,phone,product,price,clicked"]
    for shelf in range(shelves):
        at, user, phone = 60_000 * shelf, chance.randrange(20), str(chance.random() < 0.5).lower()
        for product in chance.sample(range(30), chance.randint(1, 6)):
            known, clicked = at + 60_000 * chance.randint(0, 90), int(chance.random() < (30 - product) / 40)
            lines.append(f"s{shelf},u{user},{at},{known},{phone},{product},{1.5 * product},{clicked}")
    items = len(lines) - 1
    lines += ["twice,u1,0,0,true,3,1.0,1", "twice,u1,0,0,true,3,1.0,0"]
    table.write_text("\n".join(lines) + "\n")
    file, labels = (
        tmp_path / "forks.toml",
        '[stream.labels]\ntopic = "clicks"\nevent_id = "/shelf"\ntime = "/',
    )
    definition = SLATES.replace(f'{labels}at"', f'{labels}known"').replace('window = "2h"', 'window = "50m"')
    file.write_text(definition)
    evaluated = CliRunner().invoke(app, ["evaluate", str(table), "--config", str(file), "--json"])
    assert evaluated.exit_code == 0, evaluated.output
    found = json.loads(evaluated.stdout)
    assert (found["rows"], found["skipped"]) == (items + 2, {"item_twice": 2})
    assert (found["predictions"], found["items"]) == (shelves, items)
    assert found["labelled"] > found["expired"] >= found["counters"]["late"] > 0
    assert 0 < found["ranking"]["slates"] <= shelves

    config = load(file, {"kafka.prefix": topic_prefix})
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, topics=topics_of(config))
    pipeline.options = ("--config", str(file))
    topics = pipeline.topics
    sent = json.loads(command(pipeline, "replay", str(table), "--json"))
    assert (sent["interactions"], sent["labels"], sent["events"]) == (shelves, items, items)
    again = json.loads(command(pipeline, "replay", str(table), "--resume", "--json"))
    assert (again["there_before"], again["interactions"], again["labels"]) == (shelves + items, 0, 0)
    kill_after(pipeline, (300,))
    pipeline.run_until(
        {
            topics.predictions: shelves,
            topics.outcomes: found["labelled"] + found["expired"],
            topics.dead_letters: found["dead_letters"],
        }
    )
    report = json.loads(command(pipeline, "report", "--json"))
    assert {name: found[name] for name in report} == report
    written = list(batches(read_rows(table, config.stream, 0), config, ModelFactory(config)))
    for topic, values in (
        (topics.predictions, [each.records.predictions.values for each in written]),
        (topics.outcomes, [each.records.outcomes.values for each in written]),
    ):
        assert [each.value for each in pipeline.read(topic)] == [value for part in values for value in part]
    assert "no difference" in command(pipeline, "audit", "--group", pipeline.kafka.group)
