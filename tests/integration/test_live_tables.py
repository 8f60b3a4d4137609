"""Tables that live: their records are merged by time over kills, audited, and replayed to the same bytes."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.loader import load
from pipeline.config.topics import topics_of
from pipeline.errors import StateError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.topics import create
from pipeline.records.encoding import encode
from pipeline.records.names import EXCEPTION_HEADER, TOPIC_HEADER
from pipeline.tools.inspect.reading import read
from pipeline.tools.inspect.start import Last
from tests.integration.harness import Message, Pipeline, until
from tests.integration.test_stream import command, kill_after

EVENTS = 2_000
BEGIN = 1_772_366_400_000
STEP = 60_000
RESTAURANTS, COURIERS = 25, 12
DEFINITION = """
[stream]
name = "deliveries"
[stream.entities]
courier = "/courier"
restaurant = "/restaurant"
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
[stream.running]
courier = {}
restaurant = {}
places_kitchen = { features = ["label_mean", "log_count"] }
[stream.tables.places]
topic = "places"
entity = "restaurant"
id = "/id"
time = "/since"
max_rows = 30
[stream.tables.places.features]
delay = { kind = "number", field = "/delay" }
kitchen = { kind = "category", field = "/kitchen", columns = 8, missing = "none" }
[stream.tables.riders]
topic = "riders"
entity = "courier"
[stream.tables.riders.features]
slow = { kind = "boolean", field = "/slow", missing = false }
[worker]
batch = 200
[checkpoint]
outcomes = 500
[sharing]
interval = 20
align = "2h"
"""
HOSTILE = (
    (b"1", b"{", "undecodable"),
    (b"1", b'{"id":1,"since":1772366400000}', "invalid"),
    (b"1", b'{"id":1,"delay":"3","since":1772366400000}', "invalid"),
    (b"1", b'{"id":2,"delay":3.0,"since":1772366400000}', "wrong_key"),
    (b"", b'{"id":1,"delay":3.0,"since":1772366400000}', "wrong_key"),
    (b"\xff", None, "wrong_key"),
)


class World:
    """Orders and arrivals, and the versions of both tables by time."""

    def __init__(self) -> None:
        chance = random.Random(11)
        self.inputs: list[Message] = []
        self.places: list[tuple[int, str, dict[str, Any] | None]] = []
        self.riders: list[tuple[int, str, dict[str, Any] | None]] = []
        delays = dict.fromkeys(range(RESTAURANTS), 0.0)
        slow = dict.fromkeys(range(COURIERS), False)
        for number in range(EVENTS):
            at = BEGIN + STEP * number
            if number % 7 == 0:
                which = chance.randrange(RESTAURANTS)
                delays[which] = float(chance.choice([0, 5, 40]))
                row: dict[str, Any] = {"id": which, "delay": delays[which], "since": at}
                if chance.random() < 0.8:
                    row["kitchen"] = chance.choice(["thai", "pizza"])
                gone = chance.random() < 0.1
                self.places.append((at, str(which), None if gone else row))
            if number % 31 == 0:
                rider = chance.randrange(COURIERS)
                slow[rider] = chance.random() < 0.5
                self.riders.append((at, f"c{rider}", {"slow": slow[rider]}))
            who, where = chance.randrange(COURIERS), chance.randrange(RESTAURANTS)
            ids = {"order": f"o{number}", "courier": f"c{who}", "restaurant": where}
            key = f"c{who}".encode()
            self.inputs.append(Message("orders", key, encode(ids | {"at": at}), at))
            late = delays[where] / 50 + 0.3 * slow[who] + 0.1
            known = at + 20 * STEP
            arrival = ids | {"arrived": known, "on_time": chance.random() > late}
            self.inputs.append(Message("arrivals", key, encode(arrival), known))

    def tables(self) -> list[Message]:
        """Return the records of both tables, tombstones included."""
        return [
            Message(topic, key.encode(), None if row is None else encode(row), at)
            for topic, versions in (("places", self.places), ("riders", self.riders))
            for at, key, row in versions
        ]

    def known(self, table: str, key: str, at: int) -> dict[str, Any] | None:
        """Return what a table says at a time."""
        versions = self.places if table == "places" else self.riders
        found = [row for since, name, row in versions if name == key and since <= at]
        return found[-1] if found else None


def pipeline_at(bootstrap: str, prefix: str, folder: Path, inputs: str, **changes: str) -> Pipeline:
    folder.mkdir()
    file = folder / "stream.toml"
    text = DEFINITION + f'[kafka]\ninput_prefix = "{inputs}"\n'
    for name, value in changes.items():
        text = text.replace(f"{name} = ", f"{name} = {value} # ", 1)
    file.write_text(text)
    topics = topics_of(load(file, {"kafka.prefix": prefix}))
    pipeline = Pipeline(bootstrap, prefix, folder, 2, topics=topics)
    pipeline.options = ("--config", str(file))
    return pipeline


def named(pipeline: Pipeline, messages: list[Message]) -> list[Message]:
    prefix = pipeline.topics.input_prefix or ""
    return [message._replace(topic=prefix + message.topic) for message in messages]


def assert_features_are_those_of_the_time(world: World, predictions: list[dict[str, Any]]) -> None:
    by_restaurant = Counter[bool]()
    for each in predictions:
        at, features = each["timestamp"], each["features"][-5:]
        place = world.known("places", str(each["restaurant"]), at)
        rider = world.known("riders", each["courier"], at)
        assert features[0] == (place is not None)
        assert features[1] == (0.0 if place is None else place["delay"])
        assert features[3:] == ([0.0, 0.0] if rider is None else [1.0, float(rider["slow"])])
        by_restaurant[place is not None] += 1
    assert min(by_restaurant.values()) > 50


@pytest.mark.slow
def test_tables_are_merged_by_time_over_kills_and_replay_to_the_same_bytes(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    inputs = f"{topic_prefix}in-"
    pipeline, world = pipeline_at(bootstrap, topic_prefix, tmp_path / "first", inputs), World()
    hostile = [Message("places", key, value, BEGIN) for key, value, _ in HOSTILE]
    pipeline.produce(named(pipeline, [*hostile, *world.tables(), *world.inputs]))
    checked = command(pipeline, "stream", "check", "--messages", "10000", exit_code=1)
    assert "table places" in checked
    kill_after(pipeline, (400, 1_100))
    pipeline.run_until({pipeline.topics.outcomes: EVENTS})
    predictions = pipeline.read_json(pipeline.topics.predictions)
    assert {each["event_id"] for each in predictions} == {f"o{number}" for number in range(EVENTS)}
    assert_features_are_those_of_the_time(world, predictions)
    dead = [dict(each.headers) for each in pipeline.read(pipeline.topics.dead_letters)]
    assert {each[TOPIC_HEADER].decode() for each in dead} == {f"{inputs}places"}
    assert Counter(each[EXCEPTION_HEADER].decode() for each in dead) == Counter(
        fault for *_, fault in HOSTILE
    )
    group = ("--group", pipeline.kafka.group)
    audited = json.loads(command(pipeline, "audit", "--json", *group))
    assert audited["differences"] == 0
    assert sum(each["checked"]["rows of tables looked up again"] for each in audited["partitions"]) == (
        2 * EVENTS
    )
    assert "identical" in command(pipeline, "rebuild", *group)
    assert "places_delay" in command(pipeline, "inspect", "outcomes", "--limit", "1", "--detail")
    again = pipeline_at(bootstrap, f"{topic_prefix}again-", tmp_path / "again", inputs, batch="37")
    again.run_until({again.topics.outcomes: EVENTS})
    for topic in ("predictions", "outcomes"):
        first, second = (getattr(each.topics, topic) for each in (pipeline, again))
        assert [each.value for each in pipeline.read(first)] == [each.value for each in again.read(second)]

    later = BEGIN + STEP * (EVENTS + 100)
    with pipeline.worker():
        new = {"id": 99, "delay": 7.0, "since": later}
        pipeline.produce(named(pipeline, [Message("places", b"99", encode(new), later)]))
        order = {"order": "new", "courier": "c1", "restaurant": 99, "at": later + 1}
        with pipeline.follow(pipeline.topics.predictions) as follower:
            until(lambda: follower.reached(EVENTS), "the predictions of before")
            pipeline.produce(named(pipeline, [Message("orders", b"c1", encode(order), later + 1)]))
            until(lambda: follower.reached(EVENTS + 1), "the prediction of the new item")
    until(pipeline.settled, "the end of all transactions")
    [newest] = [each for each in pipeline.read_json(pipeline.topics.predictions) if each["event_id"] == "new"]
    assert newest["features"][-5:-3] == [1.0, 7.0]
    assert "no difference" in command(pipeline, "audit", *group)

    file = pipeline.folder / "stream.toml"
    file.write_text(file.read_text().replace("max_rows = 30", "max_rows = 31"))
    where = ("--bootstrap", pipeline.kafka.bootstrap, "--prefix", pipeline.kafka.prefix)
    refused = CliRunner().invoke(app, ["run", *where, *group, *pipeline.options])
    assert isinstance(refused.exception, StateError)
    assert "stream.tables is" in str(refused.exception)


def test_topics_of_tables_have_one_partition_or_those_of_the_inputs(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = pipeline_at(bootstrap, topic_prefix, tmp_path / "one", f"{topic_prefix}in-")
    client = Admin(pipeline.kafka)
    described = client.list_topics(timeout=10.0).topics
    counts = defaultdict[str, int](int)
    for name in pipeline.topics.all:
        counts[name.removeprefix(topic_prefix).removeprefix("in-")] = len(described[name].partitions)
    assert (counts["places"], counts["riders"], counts["orders"]) == (1, 2, 2)
    assert "all 9 topics are as they should be" in command(pipeline, "topics", "check")
    assert create(client, pipeline.topics, 2) == []


def test_a_file_fills_a_table(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = pipeline_at(bootstrap, topic_prefix, tmp_path / "one", f"{topic_prefix}in-")
    file = tmp_path / "places.csv"
    file.write_text("id,since,delay,kitchen\n7,1772366400000,5.5,thai\n8,1772366400000,,pizza\n")
    text = command(pipeline, "stream", "load", "places", str(file), exit_code=1)
    assert "sent       1" in text
    assert "skipped    1 invalid" in text
    [record] = read(pipeline.kafka, pipeline.topics, f"{topic_prefix}in-places", Last(10))
    assert (record.key(), record.timestamp()[1]) == (b"7", BEGIN)
    assert json.loads(record.value() or b"") == {
        "id": 7,
        "since": BEGIN,
        "delay": 5.5,
        "kitchen": "thai",
    }
