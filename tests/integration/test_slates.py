"""Slates through real workers that are killed: each item has one outcome, and all can be derived again."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from forks.client import Client
from pipeline.config.loader import load
from pipeline.config.topics import topics_of
from pipeline.kafka.output_values import OutputValues
from pipeline.records.encoding import encode
from pipeline.records.names import MESSAGE_HEADER
from tests.integration.followers import follower
from tests.integration.harness import TIMEOUT, Message, Pipeline
from tests.integration.test_stream import command, kill_after

SHOWN = 500
BEGIN = 1_772_366_400_000
STEP = 60_000
DEFINITION = """
[stream]
name = "shelves"
[stream.entities]
user = "/user"
product = "/product"
[stream.interactions]
topic = "shown"
event_id = "/shelf"
time = "/at"
items = "/page/shown"
item_fields = ["product", "price"]
max_items = 6
[stream.labels]
topic = "clicks"
event_id = "/shelf"
time = "/at"
value = "/clicked"
value_kind = "boolean"
[stream.target]
name = "clicked"
above = 0.5
cap = 1.0
scale = 0.5
[stream.features]
price = { kind = "number", field = "/price", log = true }
phone = { kind = "boolean", field = "/phone", missing = false }

[challengers.small]
learner = "nogd"
budget = 40
rank = 10

[join]
window = "2h"
max_in_memory = 50
[worker]
batch = 100
[checkpoint]
outcomes = 300
"""


@dataclass
class Shelves:
    """Messages of slates, and what they say."""

    messages: list[Message] = field(default_factory=list)
    items: dict[str, list[int]] = field(default_factory=dict)
    """Products by event, as they were shown."""

    def show(self, topics: Any, event: str, user: str, products: list[int], at: int) -> None:
        """Add a slate."""
        page = {"shown": [{"product": each, "price": 1.5 * each} for each in products]}
        value = {"shelf": event, "user": user, "at": at, "page": page, "phone": at % 3 == 0}
        self.items[event] = products
        self.messages.append(Message(topics.interactions, user.encode(), encode(value), at))

    def click(self, topics: Any, event: str, user: str, *, product: int, at: int, clicked: bool) -> None:
        """Add the label of an item."""
        value = {"shelf": event, "user": user, "product": product, "at": at, "clicked": clicked}
        self.messages.append(Message(topics.labels, user.encode(), encode(value), at))


def shelves(topics: Any) -> Shelves:
    """Slates of products, of which the cheap ones are clicked; at last, slates that let all others expire."""
    chance, found = random.Random(11), Shelves()
    for number in range(SHOWN):
        at, user = BEGIN + STEP * number, f"u{chance.randrange(20)}"
        products = chance.sample(range(30), chance.randint(1, 6))
        found.show(topics, f"s{number}", user, products, at)
        for place, product in enumerate(products):
            if chance.random() < 0.7:
                clicked = chance.random() < ((30 - product) / 30) ** 2 / (1 + 0.1 * place)
                known = at + 60_000 * chance.randint(0, 90)
                found.click(topics, f"s{number}", user, product=product, at=known, clicked=clicked)
    end = BEGIN + STEP * SHOWN + 3 * 3_600_000
    for number in range(20):
        found.show(topics, f"last{number}", f"u{number}", [1, 2], end)
        for product in (1, 2):
            event, clicked = f"last{number}", product == 1
            found.click(topics, event, f"u{number}", product=product, at=end + 60_000, clicked=clicked)
    found.messages.sort(key=lambda each: each.timestamp)
    return found


def pipeline_of_slates(
    bootstrap: str, prefix: str, folder: Path, definition: str = DEFINITION, partitions: int = 2
) -> Pipeline:
    file = folder / "forks.toml"
    file.write_text(definition)
    topics = topics_of(load(file, {"kafka.prefix": prefix}))
    pipeline = Pipeline(bootstrap, prefix, folder, partitions, topics=topics)
    pipeline.options = ("--config", str(file))
    return pipeline


def bad_messages(topics: Any, at: int) -> dict[str, Message]:
    """Messages that cannot be used, by what the reason says."""
    item = {"product": 1, "price": 1.0}
    pages: dict[str, Any] = {
        "Expected `int | str`, got `float` - at `$.page.shown[1].product`": [
            item,
            {"product": 0.5, "price": 1.0},
        ],
        "The item 1 is in the slate twice, also as `page.shown[0]` - at `$.page.shown[2].product`": [
            item,
            {"product": 2, "price": 1.0},
            item,
        ],
        "Expected `array` of length >= 1 - at `$.page.shown`": [],
        "Expected `array` of length <= 6 - at `$.page.shown`": [item | {"product": n} for n in range(7)],
        "Object missing required field `price` - at `$.page.shown[0]`": [{"product": 1}],
        "Expected `array`, got `object` - at `$.page.shown`": {"product": 1},
    }
    return {
        reason: Message(
            topics.interactions,
            b"u1",
            encode({"shelf": f"bad{number}", "user": "u1", "at": at, "page": {"shown": page}}),
            at,
        )
        for number, (reason, page) in enumerate(pages.items())
    }


def test_each_item_has_one_outcome_over_kills(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = pipeline_of_slates(bootstrap, topic_prefix, tmp_path)
    sent = shelves(pipeline.topics)
    bad = bad_messages(pipeline.topics, sent.messages[-1].timestamp)
    pipeline.produce(sent.messages)
    assert "shelves: everything fits" in command(pipeline, "stream", "check", "--messages", "10000")
    pipeline.produce(bad.values())
    outcomes = check_run(pipeline, sent, kills=(200, 900))
    letters = pipeline.read(pipeline.topics.dead_letters)
    reasons = [(dict(each.headers)[MESSAGE_HEADER] or b"").decode() for each in letters]
    assert sorted(reasons) == sorted(bad)
    check_tools(pipeline, sent, outcomes)


def outputs(pipeline: Pipeline, topic: str) -> list[Any]:
    """Return the records of a topic, in whatever format they are."""
    values = OutputValues(pipeline.topics)
    return [json.loads(values.json(topic, each.value or b"")) for each in pipeline.read(topic)]


def check_run(pipeline: Pipeline, sent: Shelves, kills: tuple[int, ...]) -> int:
    """Run with kills to the end, and check that each item has one outcome; return their number."""
    expected = Counter((event, product) for event, products in sent.items.items() for product in products)
    kill_after(pipeline, kills)
    pipeline.run_until({pipeline.topics.outcomes: expected.total()})
    predictions = outputs(pipeline, pipeline.topics.predictions)
    assert Counter(each["event_id"] for each in predictions) == Counter([*sent.items])
    for each in predictions:
        assert [item["product"] for item in each["items"]] == sent.items[each["event_id"]]
    outcomes = outputs(pipeline, pipeline.topics.outcomes)
    assert Counter((each["event_id"], each["product"]) for each in outcomes) == expected
    assert all(sent.items[each["event_id"]][each["position"]] == each["product"] for each in outcomes)
    assert {each["status"] for each in outcomes} == {"labelled", "expired"}
    return len(outcomes)


def check_tools(pipeline: Pipeline, sent: Shelves, outcomes: int) -> None:
    """Look at the run with each tool that reads slates."""
    group = ("--group", pipeline.kafka.group)
    assert "no difference" in command(pipeline, "audit", *group)
    assert "identical" in command(pipeline, "rebuild", *group)
    report = json.loads(command(pipeline, "report", "--json", "--top", "3"))
    assert (report["predictions"], report["items"], report["differences"]) == (
        len(sent.items),
        outcomes,
        [],
    )
    ranking = report["ranking"]
    assert (ranking["slates"], ranking["top"]) == (len(sent.items), 3)
    assert [each["name"] for each in ranking["rankings"]] == ["shown order", "champion", "small"]
    assert all(0.0 < each["ndcg"] <= 1.0 and each["ndcg_error"] > 0.0 for each in ranking["rankings"])
    assert ranking["rankings"][1]["gain"] > 0.0
    assert sum(each["items"] for each in ranking["positions"]) == outcomes
    assert "NDCG@5" in command(pipeline, "report")
    shown = command(pipeline, "inspect", "predictions", "--limit", "1", "--detail")
    assert shown.count(".score ") == len(pipeline.read_json(pipeline.topics.predictions)[-1]["items"])
    assert "last1" in command(pipeline, "inspect", "interactions", "--detail")
    folder = pipeline.folder / "exported"
    command(pipeline, "export", "predictions", "--to", str(folder))
    rows = pl.read_parquet(folder / "**" / "*.parquet")
    assert rows.height == outcomes
    assert rows["offset"].n_unique() <= len(sent.items)


def test_candidates_are_scored_by_the_model_of_the_slates(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = pipeline_of_slates(bootstrap, topic_prefix, tmp_path)
    sent = shelves(pipeline.topics)
    pipeline.produce(sent.messages)
    pipeline.run_until({pipeline.topics.outcomes: sum(map(len, sent.items.values()))})
    log, items = tmp_path / "scores.jsonl", [{"product": each, "price": 1.5 * each} for each in (1, 29)]
    options = (*pipeline.options, "--log-scores", str(log))
    with follower(pipeline, *options) as url, Client([url], timeout=TIMEOUT) as client:
        cheap, dear = client.score({"user": "u1", "phone": True}, items).items
    assert cheap.score > dear.score
    group = ("--group", pipeline.kafka.group)
    assert "no difference" in command(pipeline, "audit", "--scores", str(log), *group)
