"""A follower draws the first item of slates, which carry its propensity into a report."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from forks.client import Client, Scores
from pipeline.config.stream import CARRIED
from pipeline.records.encoding import encode
from pipeline.tools.audit.scores import CHOICES_CHECKED
from tests.integration.followers import follower
from tests.integration.harness import TIMEOUT, Message, Pipeline, until
from tests.integration.test_slates import BEGIN, DEFINITION, pipeline_of_slates
from tests.integration.test_stream import command

ROUNDS, REQUESTS = 4, 60
PRODUCTS = [1, 8, 15, 22, 29]
CARRIES = "".join(f'{name} = "/{name}"\n' for name in CARRIED)
EXPLORING = (
    DEFINITION.replace(
        'item_fields = ["product", "price"', f'item_fields = ["product", "price", {str([*CARRIED])[1:-1]}'
    )
    .replace("max_items = 6\n", f"max_items = 6\n{CARRIES}")
    .replace("outcomes = 300", "outcomes = 150")
    + '[serve]\nexplore = "thompson"\nepsilon = 0.2\n'
)


def chance_of(product: int) -> float:
    """The probability of a click on a product that is shown first."""
    return 0.1 + 0.025 * product


class Shown(NamedTuple):
    """A slate: the drawn product first, then the others by their scores."""

    number: int
    scores: Scores

    @property
    def at(self) -> int:
        return BEGIN + 1_000 * self.number

    @property
    def order(self) -> list[int]:
        """Places of the candidates, in the order in which they are shown."""
        chosen = self.scores.chosen
        assert chosen is not None
        rest = [place for place in range(len(PRODUCTS)) if place != chosen]
        return [chosen, *sorted(rest, key=lambda place: -self.scores.items[place].score)]

    @property
    def numbers(self) -> dict[str, float | None]:
        """What the first item carries."""
        found = self.scores
        numbers = (
            found.items[self.order[0]].propensity,
            found.target_propensity,
            found.estimate,
            found.target_estimate,
        )
        return dict(zip(CARRIED, numbers, strict=True))

    def messages(self, topics: Any, clicked: bool) -> list[Message]:
        """Return the slate and the labels of its items, of which only the first may be clicked."""
        user = f"u{self.number % 20}"
        products = [PRODUCTS[place] for place in self.order]
        items: list[dict[str, Any]] = [{"product": each, "price": 1.5 * each} for each in products]
        items[0] |= self.numbers
        event = {"shelf": f"s{self.number}", "user": user, "at": self.at}
        slate = encode(event | {"phone": True, "page": {"shown": items}})
        labels = [
            encode(event | {"at": self.at + 500, "product": each, "clicked": clicked and not place})
            for place, each in enumerate(products)
        ]
        shown = Message(topics.interactions, user.encode(), slate, self.at)
        return [shown, *(Message(topics.labels, user.encode(), each, self.at + 500) for each in labels)]


def ask(client: Client, number: int) -> Shown:
    context = {"user": f"u{number % 20}", "shelf": f"s{number}", "phone": True}
    items = [{"product": each, "price": 1.5 * each} for each in PRODUCTS]
    scores = client.score(context, items, time=BEGIN + 1_000 * number, explore=True)
    return Shown(number, scores)


def show_and_kill(pipeline: Pipeline, client: Client) -> list[tuple[Shown, bool]]:
    """Show what a follower draws, round by round, to a worker that is killed in the middle of each."""
    chance, shown = random.Random(4), list[tuple[Shown, bool]]()
    items = len(PRODUCTS)
    with pipeline.follow(pipeline.topics.outcomes) as counted:
        for each in range(ROUNDS):
            asked = [ask(client, each * REQUESTS + n) for n in range(REQUESTS)]
            new = [(one, chance.random() < chance_of(PRODUCTS[one.order[0]])) for one in asked]
            pipeline.produce(
                [text for one, clicked in new for text in one.messages(pipeline.topics, clicked)]
            )
            for goal in (len(shown) + REQUESTS // 2, len(shown) + REQUESTS):
                worker = pipeline.start_worker()
                try:
                    until(partial(counted.reached, goal * items), f"{goal} slates", worker)
                finally:
                    worker.kill()
                    worker.wait()
            shown += new
    return shown


@pytest.mark.slow
def test_the_first_item_s_propensity_goes_round_and_tells_what_others_are_worth(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = pipeline_of_slates(bootstrap, topic_prefix, tmp_path, EXPLORING)
    log = tmp_path / "scores.jsonl"
    with (
        follower(pipeline, *pipeline.options, "--log-scores", str(log)) as url,
        Client([url], timeout=TIMEOUT) as client,
    ):
        shown = show_and_kill(pipeline, client)
    with pipeline.worker():
        pass
    until(pipeline.settled, "the end of all transactions")
    assert len({one.order[0] for one, _ in shown}) == len(PRODUCTS)

    numbers = {f"s{one.number}": one.numbers for one, _ in shown}
    none = dict.fromkeys(CARRIED)
    for prediction in pipeline.read_json(pipeline.topics.predictions):
        carried = [{name: item[name] for name in CARRIED} for item in prediction["items"]]
        assert carried == [numbers[prediction["event_id"]], *[none] * (len(PRODUCTS) - 1)]
    outcomes = pipeline.read_json(pipeline.topics.outcomes)
    assert len(outcomes) == len(PRODUCTS) * len(shown)
    for outcome in outcomes:
        expected = none if outcome["position"] else numbers[outcome["event_id"]]
        assert {name: outcome[name] for name in CARRIED} == expected

    options = ("audit", "--scores", str(log), "--group", pipeline.kafka.group, "--json")
    audited = json.loads(command(pipeline, *options))
    drawn = [each["checked"].get(CHOICES_CHECKED, 0) for each in audited["partitions"]]
    assert sum(drawn) == len(shown)
    assert not any(each["differences"] for each in audited["partitions"])

    report = json.loads(command(pipeline, "report", "--off-policy", "--level", "0.9999", "--json"))
    found = report["off_policy"]
    assert found["outcomes"] == found["weighted"] == found["with_estimates"] == len(shown)
    assert found["logged"]["value"] == pytest.approx(sum(clicked for _, clicked in shown) / len(shown))
    scores = [[item.score for item in one.scores.items] for one, _ in shown]
    truth = sum(chance_of(PRODUCTS[each.index(max(each))]) for each in scores) / len(shown)
    for name in ("ips", "snips", "doubly_robust"):
        assert found[name]["low"] <= truth <= found[name]["high"]
