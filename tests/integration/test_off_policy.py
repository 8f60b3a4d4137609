"""A follower explores, interactions carry its propensities, and a report says what others are worth."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from forks.client import Client, Scores
from pipeline.cli import app
from pipeline.config.loader import load
from pipeline.config.stream import CARRIED
from pipeline.config.topics import topics_of
from pipeline.errors import ConfigError
from pipeline.records.encoding import encode
from pipeline.tools.audit.scores import CHOICES_CHECKED
from tests.integration.followers import follower
from tests.integration.harness import TIMEOUT, Message, Pipeline, until
from tests.integration.test_stream import command

ROUNDS, REQUESTS = 8, 60
BEGIN = 1_772_366_400_000
ITEMS = ["a", "b", "c", "d", "e"]
DEFINITION = """
[stream]
name = "clicks"

[stream.entities]
reader = "/reader"
article = "/shown/article"

[stream.interactions]
topic = "shown"
event_id = "/id"
time = "/at"
propensity = "/shown/propensity"
target_propensity = "/shown/target_propensity"
estimate = "/shown/estimate"
target_estimate = "/shown/target_estimate"

[stream.labels]
topic = "clicked"
event_id = "/id"
time = "/at"
value = "/clicked"
value_kind = "boolean"

[stream.target]
name = "clicked"
above = 0.5
cap = 1.0
scale = 0.5

[serve]
explore = "thompson"
epsilon = 0.1

[checkpoint]
outcomes = 150

[worker]
batch = 20
"""


def chance_of(reader: int, article: str) -> float:
    """The probability of a click."""
    return 0.1 + 0.15 * ITEMS.index(article) + (0.1 if reader % 2 else -0.05)


class Shown(NamedTuple):
    """An event."""

    number: int
    reader: int
    scores: Scores

    @property
    def at(self) -> int:
        return BEGIN + 1_000 * self.number

    @property
    def chosen(self) -> int:
        assert self.scores.chosen is not None
        return self.scores.chosen

    @property
    def numbers(self) -> dict[str, float | None]:
        """What the interaction carries."""
        scores = self.scores
        numbers = (
            scores.items[self.chosen].propensity,
            scores.target_propensity,
            scores.estimate,
            scores.target_estimate,
        )
        return dict(zip(CARRIED, numbers, strict=True))

    def messages(self, pipeline: Pipeline, clicked: bool) -> Iterator[Message]:
        """The interaction, and the label that comes half a second later."""
        topics, key = pipeline.topics, str(self.reader).encode()
        article = {"article": ITEMS[self.chosen]}
        event = {"id": f"e{self.number}", "reader": self.reader, "at": self.at, "shown": article}
        yield Message(topics.interactions, key, encode(event | {"shown": article | self.numbers}), self.at)
        label = event | {"at": self.at + 500, "clicked": clicked}
        yield Message(topics.labels, key, encode(label), self.at + 500)


def pipeline_in(bootstrap: str, prefix: str, folder: Path) -> Pipeline:
    file = folder / "clicks.toml"
    file.write_text(DEFINITION)
    topics = topics_of(load(file, {"kafka.prefix": prefix}))
    pipeline = Pipeline(bootstrap, prefix, folder, 2, topics=topics)
    pipeline.options = ("--config", str(file))
    return pipeline


def ask(client: Client, number: int, reader: int) -> Shown:
    context = {"reader": reader, "id": f"e{number}"}
    items = [{"shown": {"article": each}} for each in ITEMS]
    scores = client.score(context, items, time=BEGIN + 1_000 * number, explore=True)
    return Shown(number, reader, scores)


def show_and_kill(pipeline: Pipeline, client: Client) -> list[tuple[Shown, bool]]:
    """Show what a follower chooses, round by round, to a worker that is killed in the middle of some."""
    chance, shown = random.Random(4), list[tuple[Shown, bool]]()
    with pipeline.follow(pipeline.topics.outcomes) as counted:
        for each in range(ROUNDS):
            asked = [ask(client, each * REQUESTS + n, chance.randrange(30)) for n in range(REQUESTS)]
            new = [(one, chance.random() < chance_of(one.reader, ITEMS[one.chosen])) for one in asked]
            pipeline.produce([text for one, clicked in new for text in one.messages(pipeline, clicked)])
            for goal in (len(shown) + REQUESTS // 2, len(shown) + REQUESTS):
                worker = pipeline.start_worker()
                try:
                    until(partial(counted.reached, goal), f"{goal} outcomes", worker)
                finally:
                    worker.kill()
                    worker.wait()
            shown += new
    return shown


def test_propensities_go_round_and_tell_what_others_are_worth(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline, log = pipeline_in(bootstrap, topic_prefix, tmp_path), tmp_path / "scores.jsonl"
    options = (*pipeline.options, "--log-scores", str(log))
    with follower(pipeline, *options) as url, Client([url], timeout=TIMEOUT) as client:
        shown = show_and_kill(pipeline, client)
    with pipeline.worker():
        pass
    until(pipeline.settled, "the end of all transactions")
    assert len({one.chosen for one, _ in shown}) == len(ITEMS)

    numbers = {f"e{one.number}": one.numbers for one, _ in shown}
    for topic in (pipeline.topics.predictions, pipeline.topics.outcomes):
        records = pipeline.read_json(topic)
        assert {each["event_id"]: {name: each[name] for name in CARRIED} for each in records} == numbers
        assert len(records) == len(shown)

    options = ("audit", "--scores", str(log), "--group", pipeline.kafka.group, "--json")
    audited = json.loads(command(pipeline, *options))
    drawn = [each["checked"].get(CHOICES_CHECKED, 0) for each in audited["partitions"]]
    assert sum(drawn) == len(shown)
    assert not any(each["differences"] for each in audited["partitions"])

    report = json.loads(command(pipeline, "report", "--off-policy", "--level", "0.9999", "--json"))
    found = report["off_policy"]
    assert found["outcomes"] == found["weighted"] == found["with_estimates"] == len(shown)
    assert found["logged"]["value"] == pytest.approx(sum(clicked for _, clicked in shown) / len(shown))
    greedy = [max(one.scores.items, key=lambda item: item.score) for one, _ in shown]
    best = [one.scores.items.index(item) for (one, _), item in zip(shown, greedy, strict=True)]
    truth = sum(chance_of(one.reader, ITEMS[n]) for (one, _), n in zip(shown, best, strict=True)) / len(shown)
    for name in ("ips", "snips", "doubly_robust"):
        assert found[name]["low"] <= truth <= found[name]["high"]
    text = command(pipeline, "report", "--off-policy")
    assert "target, doubly robust" in text
    plain = json.loads(command(pipeline, "report", "--json"))
    assert "off_policy" not in plain


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--off-policy",), "interactions.propensity"),
        (("--level", "0.9"), "--off-policy"),
        (("--cap", "3"), "--off-policy"),
    ],
)
def test_what_cannot_be_estimated_is_said(options: tuple[str, ...], problem: str) -> None:
    result = CliRunner().invoke(app, ["report", *options, "--bootstrap", "127.0.0.1:1"])
    assert isinstance(result.exception, ConfigError)
    assert problem in str(result.exception)


@pytest.mark.parametrize(
    ("options", "problem"),
    [(("--level", "1"), "--level is 1"), (("--level", "nan"), "--level"), (("--cap", "0"), "--cap is 0")],
)
def test_options_out_of_range_are_named(options: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    file = tmp_path / "clicks.toml"
    file.write_text(DEFINITION)
    arguments = ["report", "--config", str(file), "--off-policy", *options, "--bootstrap", "127.0.0.1:1"]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, ConfigError)
    assert problem in str(result.exception)
