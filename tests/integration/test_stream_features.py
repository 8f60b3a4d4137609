"""Streams with no entity, one and three, and with features of their own, by configuration alone."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import StateError
from pipeline.records.encoding import encode
from pipeline.records.names import MESSAGE_HEADER
from tests.integration.harness import Message, Pipeline
from tests.integration.test_stream import command, kill_after, pipeline_of

EVENTS = 2_400
BEGIN = 1_772_366_400_000
CUISINES = ("thai", "pizza", "sushi", "tacos")
COMMON = """
name = "deliveries"
[stream.interactions]
topic = "orders"
event_id = "/order"
time = "/at"
[stream.labels]
topic = "arrivals"
event_id = "/order"
time = "/arrived"
value = "/on_time"
value_kind = "boolean"
[stream.target]
name = "on_time"
above = 0.5
cap = 1.0
scale = 0.5
[stream.features]
distance = { kind = "number", field = "/route/km", log = true, clip = [0.0, 50.0] }
cuisine = { kind = "category", field = "/cuisine", columns = 8 }
express = { kind = "boolean", field = "/express", missing = false }
load = { kind = "vector", field = "/load", length = 2, missing = 0.0 }
hour = { kind = "hour", utc_offset = "+01:00" }
"""
WORKER = """
[worker]
batch = 200
[checkpoint]
outcomes = 500
"""
SHAPES = {
    "none": ("", "[stream.running]\ncuisine = {}\n"),
    "one": (
        'crosses = ["pairs", ["who", "distance", "slot"]]\n',
        """
[stream.entities]
courier = "/courier"
[stream.running]
courier = { half_life = "6h" }
taste = { of = ["courier", "cuisine"], features = ["label_mean", "log_count"] }
""",
    ),
    "three": (
        'key = "courier"\neffects = ["courier", "restaurant"]\n',
        """
[stream.entities]
restaurant = "/restaurant"
courier = "/courier"
district = "/district"
[stream.running]
courier = {}
restaurant = { leans_on = "cuisine", features = ["label_mean", "effect", "noise", "leaning_label_mean"] }
cuisine = { features = ["label_mean", "log_since_last"] }
place = { of = ["restaurant", "district"], features = ["label_mean"], half_life = "1d" }
""",
    ),
}
"""Settings of the stream itself, and its sections, by how many entities there are."""
TABLES = {
    "none": ["cuisines"],
    "one": ["couriers", "tastes"],
    "three": ["couriers", "restaurants", "cuisines", "places"],
}
WEIGHTS = (0.0, 0.25, 1.0, 1.0, 3.0, 40.0)
"""Weights of labels, in the stream with one entity."""
WEIGHTED = """
[challengers.wider]
learner = "forks"
budget = 120
[challengers.descent]
learner = "nogd"
[challengers.mistakes]
learner = "projectron"
"""
SPARSE = (
    "[stream.features]\n",
    """[stream.features]
who = { kind = "id", entity = "courier" }
slot = { kind = "hour", encoding = "category" }
note = { kind = "text", field = "/note", words = 6, missing = "" }
""",
)
"""Features that have weights of their own beside categories, in the stream with one entity."""
OTHER_COLUMNS = (("columns = 8", "columns = 16"), ('"/cuisine"', '"/cuisine", columns = 16'))
"""What changes the columns of a category, where it has some and where it has none."""
ENTITIES = {"none": [], "one": ["courier"], "three": ["restaurant", "courier", "district"]}


def messages(shape: str, interactions: str, labels: str) -> list[Message]:
    """Orders that are late the likelier, the farther and the slower the courier, and their arrivals."""
    chance, found = random.Random(7), list[Message]()
    for number in range(EVENTS):
        at, km, cuisine = BEGIN + 60_000 * number, 20.0 * chance.random(), chance.choice(CUISINES)
        who: dict[str, Any] = {
            "restaurant": chance.randrange(25),
            "courier": f"c{chance.randrange(40)}",
            "district": chance.randrange(3),
        }
        late = km / 40 + int(who["courier"][1:]) / 100 + 0.2 * (cuisine == "sushi")
        ids: dict[str, Any] = {"order": f"o{number}"} | {name: who[name] for name in ENTITIES[shape]}
        order = ids | {"at": at, "route": {"km": km}, "cuisine": cuisine, "load": [chance.random(), 1.0]}
        if chance.random() < 0.3:
            order["express"] = True
        if shape == "one":
            order["note"] = f"Ring TWICE, {cuisine} for {who['courier']}"
        key = str(ids["order"] if shape == "none" else who["courier"]).encode()
        found.append(Message(interactions, key, encode(order), at))
        arrival = ids | {"arrived": at + 1_200_000, "on_time": chance.random() > late}
        if shape == "one":
            arrival["worth"] = WEIGHTS[number % len(WEIGHTS)]
        found.append(Message(labels, key, encode(arrival), at + 1_200_000))
    return found


def shares(pipeline: Pipeline, table: str) -> int:
    return sum(len(share[table]) for share in pipeline.read_json(pipeline.topics.shared))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_any_number_of_entities_and_features_are_learned_over_kills(
    bootstrap: str, topic_prefix: str, tmp_path: Path, shape: str
) -> None:
    settings, sections = SHAPES[shape]
    definition = f"[stream]\n{settings}{COMMON}{sections}{WORKER}"
    if shape == "one":
        definition = definition.replace("[stream.labels]", '[stream.labels]\nweight = "/worth"') + WEIGHTED
        definition = definition.replace(", columns = 8", "")  # its values have weights of their own
        definition = definition.replace(*SPARSE)
    pipeline = pipeline_of(bootstrap, topic_prefix, tmp_path / shape, definition)
    sent = messages(shape, *pipeline.topics.inputs)
    pipeline.produce(sent)
    assert "deliveries: everything fits" in command(pipeline, "stream", "check", "--messages", "10000")
    bad = json.loads(sent[0].value or b"") | {"order": "bad", "load": [1.0]}
    key = b"bad" if shape == "none" else sent[0].key
    pipeline.produce([Message(pipeline.topics.interactions, key, encode(bad), sent[-1].timestamp)])
    kill_after(pipeline, (400, 1_100))
    pipeline.run_until({pipeline.topics.outcomes: EVENTS})
    predictions = pipeline.read_json(pipeline.topics.predictions)
    assert {each["event_id"] for each in predictions} == {f"o{number}" for number in range(EVENTS)}
    assert list(predictions[0])[: 2 + len(ENTITIES[shape])] == ["event_id", *ENTITIES[shape], "timestamp"]
    [dead] = pipeline.read(pipeline.topics.dead_letters)
    assert b"`array` of length >= 2 - at `$.load`" in dict(dead.headers)[MESSAGE_HEADER]
    outcomes = pipeline.read_json(pipeline.topics.outcomes)
    weights = {each["event_id"]: each.get("weight") for each in outcomes}
    expected = WEIGHTS if shape == "one" else [None]
    assert weights == {f"o{number}": expected[number % len(expected)] for number in range(EVENTS)}
    late = [each for each in outcomes if each["sequence"] >= EVENTS // 4]
    rare = min(sum(each["label"] is label for each in late) for label in (True, False))
    assert sum(not each["correct"] for each in late) < 0.95 * rare
    if shape == "three":
        assert all(shares(pipeline, table) > 100 for table in ("restaurants", "cuisines", "places"))
    if shape == "one":
        taught = [each for share in pipeline.read_json(pipeline.topics.shared) for each in share["examples"]]
        assert {example[-1] for example in taught} == {*WEIGHTS}
    group = ("--group", pipeline.kafka.group)
    assert "no difference" in command(pipeline, "audit", *group)
    assert "identical" in command(pipeline, "rebuild", *group)
    assert "cuisine" in command(pipeline, "inspect", "outcomes", "--limit", "1", "--detail")
    assert json.loads(command(pipeline, "report", "--json"))["labelled"] == EVENTS
    shown = json.loads(command(pipeline, "checkpoint", "show", "--partition", "0", "--json", *group))
    assert [*shown["kept"]] == [*TABLES[shape], "tags"]
    assert all(shown["kept"][name] > 0 for name in TABLES[shape])
    definition = (pipeline.folder / "stream.toml").read_text()
    (pipeline.folder / "stream.toml").write_text(definition.replace(*OTHER_COLUMNS[shape == "one"]))
    kafka = pipeline.kafka
    where = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, *group, *pipeline.options)
    refused = CliRunner().invoke(app, ["run", *where])
    assert isinstance(refused.exception, StateError)
    assert "stream.features is" in str(refused.exception)
