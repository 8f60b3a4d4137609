"""Corrected labels beside other features of a stream, through real workers that are killed."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from pipeline.config.topics import Topics
from pipeline.records.encoding import encode
from tests.integration.harness import Message
from tests.integration.test_live_tables import (
    World,
    assert_features_are_those_of_the_time,
    named,
    pipeline_at,
)
from tests.integration.test_slates import DEFINITION, pipeline_of_slates
from tests.integration.test_stream import command, kill_after

SHOWN = 300
BEGIN = 1_772_366_400_000
STEP = 60_000
SINGLE = DEFINITION.replace('items = "/page/shown"\nitem_fields = ["product", "price"]\nmax_items = 6\n', "")
LABELS = 'event_id = "/shelf"\ntime = "/at"\nvalue'
WEIGHT = LABELS, LABELS.replace("value", 'weight = "/worth"\nvalue')
STREAMS = {
    "slates with weights": DEFINITION.replace(*WEIGHT),
    "carried numbers, weights and a label policy": SINGLE.replace(*WEIGHT).replace(
        "[stream.labels]\ntopic", 'propensity = "/chance"\n[stream.labels]\ntopic'
    )
    + '[labels]\npolicy = "random"\nrate = 0.5\nlearn_unasked = true\n',
}


def messages(topics: Topics, *, slates: bool) -> tuple[list[Message], Counter[str]]:
    """Items that are shown. Each gets a label, every third another one later, every tenth one too late."""
    rng, found, counts = random.Random(5), list[Message](), Counter[str]()
    for number in range(SHOWN):
        user, at = f"u{number % 20}", BEGIN + STEP * number
        products = rng.sample(range(30), 3 if slates else 1)
        shown = [{"product": each, "price": 1.0 + each} for each in products]
        event = {"shelf": f"s{number}", "user": user, "at": at, "phone": number % 2 == 0, "chance": 0.5}
        page = {"page": {"shown": shown}} if slates else shown[0]
        found.append(Message(topics.interactions, user.encode(), encode(event | page), at))
        for place, product in enumerate(products):
            item, clicked = 3 * number + place + number // 3, (product + number) % 3 == 0
            answers = [(at + 5 * STEP, clicked)]
            if item % 10 == 7:
                answers = [(at + 130 * STEP, True)]
                counts.update(expired=1, later=1)
            elif item % 3 == 1:
                answers.append((at + 40 * STEP, not clicked))
                counts.update(later=1)
            counts.update(items=1)
            for known, value in answers:
                about = {"shelf": f"s{number}", "user": user, "product": product, "at": known}
                about |= {"clicked": value, "worth": (item % 5) / 2}
                found.append(Message(topics.labels, user.encode(), encode(about), known))
    return sorted(found, key=lambda each: each.timestamp or 0), counts


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["add", "replace"])
@pytest.mark.parametrize("name", STREAMS)
def test_labels_are_corrected_over_kills(
    bootstrap: str, topic_prefix: str, tmp_path: Path, name: str, mode: str
) -> None:
    definition = STREAMS[name].replace("[join]\n", f'[join]\ncorrections = "{mode}"\n')
    pipeline = pipeline_of_slates(bootstrap, topic_prefix, tmp_path, definition)
    sent, counts = messages(pipeline.topics, slates="slates" in name)
    pipeline.produce(sent)
    kill_after(pipeline, (counts["items"] // 3, counts["items"]))
    pipeline.run_until({pipeline.topics.outcomes: counts["items"] + counts["later"]})
    outcomes = pipeline.read_json(pipeline.topics.outcomes)
    status = "replaced" if mode == "replace" else "corrected"
    found = Counter(each["status"] for each in outcomes)
    assert (found[status], found["expired"]) == (counts["later"], counts["expired"])
    if "weights" in name:
        assert {each["weight"] for each in outcomes} >= {0.0, 0.5, 1.5}
    if "carried" in name:
        assert {each["propensity"] for each in outcomes} == {0.5}
    if "policy" in name:
        assert {each["asked"] for each in outcomes} == {True, False}
    assert pipeline.read(pipeline.topics.dead_letters) == []
    group = ("--group", pipeline.kafka.group)
    assert "no difference" in command(pipeline, "audit", *group)
    assert "identical" in command(pipeline, "rebuild", *group)
    assert json.loads(command(pipeline, "report", "--json"))["differences"] == []


def corrected(arrivals: list[Message]) -> tuple[list[Message], Counter[str]]:
    """Return labels of which every third is corrected later, and every tenth comes too late."""
    found, counts = list[Message](), Counter[str]()
    for number, first in enumerate(arrivals):
        about = json.loads(first.value or b"")
        answers = [(first.timestamp, about["on_time"])]
        if number % 10 == 7:
            answers = [(first.timestamp + 130 * STEP, about["on_time"])]
            counts.update(expired=1, later=1)
        elif number % 3 == 1:
            answers.append((first.timestamp + 40 * STEP, not about["on_time"]))
            counts.update(later=1)
        for known, value in answers:
            said = about | {"arrived": known, "on_time": value}
            found.append(first._replace(value=encode(said), timestamp=known))
    return sorted(found, key=lambda each: each.timestamp), counts


@pytest.mark.slow
def test_labels_of_events_that_were_looked_up_are_corrected_over_kills(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline, world = pipeline_at(bootstrap, topic_prefix, tmp_path / "one", f"{topic_prefix}in-"), World()
    file = pipeline.folder / "stream.toml"
    file.write_text(file.read_text() + '[join]\nwindow = "2h"\ncorrections = "replace"\n')
    by_topic = {
        topic: [each for each in world.inputs if each.topic == topic] for topic in ("orders", "arrivals")
    }
    labels, counts = corrected(by_topic["arrivals"])
    events = len(by_topic["orders"])
    pipeline.produce(named(pipeline, [*world.tables(), *by_topic["orders"], *labels]))
    kill_after(pipeline, (events // 3, events))
    pipeline.run_until({pipeline.topics.outcomes: events + counts["later"]})
    predictions = pipeline.read_json(pipeline.topics.predictions)
    assert_features_are_those_of_the_time(world, predictions)
    looked_up = {each["event_id"]: (each["features"], each["tables"]) for each in predictions}
    outcomes = pipeline.read_json(pipeline.topics.outcomes)
    assert all(looked_up[each["event_id"]] == (each["features"], each["tables"]) for each in outcomes)
    found = Counter(each["status"] for each in outcomes)
    assert (found["replaced"], found["expired"]) == (counts["later"], counts["expired"])
    assert pipeline.read(pipeline.topics.dead_letters) == []
    group = ("--group", pipeline.kafka.group)
    audited = json.loads(command(pipeline, "audit", "--json", *group))
    assert audited["differences"] == 0
    assert sum(each["checked"]["rows of tables looked up again"] for each in audited["partitions"]) == (
        2 * events
    )
    assert "identical" in command(pipeline, "rebuild", *group)
    assert json.loads(command(pipeline, "report", "--json"))["differences"] == []
