from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.request import urlopen

import pytest

from pipeline.config.tree import Config, Worker
from pipeline.features.tables import Tables
from pipeline.kafka.partitioner import partition
from pipeline.model.model import Model
from pipeline.records.encoding import encode
from pipeline.worker import source as intake
from pipeline.worker import throttle as storm
from pipeline.worker.metrics import Gauges, served
from pipeline.worker.session import Session
from tests.integration.harness import Message, Pipeline
from tests.support.builders import interaction, small_learner

POISON, GOOD, LIMIT = 60, 20, 20
HELD_BACK = {
    'forks_held_back{partition="0"} 1.0',
    'forks_held_back{partition="1"} 0.0',
    f'forks_dead_letters_this_minute{{partition="0"}} {LIMIT:.1f}',
    f"forks_dead_letters_per_minute_limit {LIMIT:.1f}",
    'forks_input_paused{input="interactions",partition="0"} 1.0',
    'forks_input_buffered_messages{input="interactions",partition="1"} 0.0',
    f'forks_pending_predictions{{partition="1"}} {GOOD:.1f}',
}


def scraped(address: str) -> set[str]:
    """The lines that Prometheus would find."""
    with urlopen(f"http://{address}/metrics", timeout=10.0) as response:
        return set(response.read().decode().splitlines())


def new_model() -> Model:
    return Model(small_learner(), Tables(), 10)


def test_a_storm_of_poison_holds_its_own_partition_back_and_loses_nothing(
    bootstrap: str, topic_prefix: str, tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    topics = pipeline.topics
    stormy, calm = (next(u for u in range(99) if partition(b"%d" % u, 2) == place) for place in (0, 1))
    pipeline.produce(Message(topics.interactions, b"%d" % stormy, b"{") for _ in range(POISON))
    for user in (stormy, calm):
        shown = [interaction(f"{user}-{n}", n, user) for n in range(GOOD)]
        pipeline.produce(Message(topics.interactions, b"%d" % user, encode(each)) for each in shown)
    config = Config(kafka=pipeline.kafka, worker=Worker(batch=1, dead_letters=LIMIT))
    monkeypatch.setattr(intake, "FEWEST", 0)
    monkeypatch.setattr(storm, "MINUTE", float("inf"))
    gauges, address = Gauges(config), f"127.0.0.1:{free_port}"

    def written() -> tuple[int, Counter[int]]:
        predicted = Counter(each.partition for each in pipeline.read(topics.predictions))
        return len(pipeline.read(topics.dead_letters)), predicted

    with (
        pipeline.follow(topics.predictions) as predictions,
        pipeline.follow(topics.dead_letters) as letters,
        served(gauges, address),
        Session(config, "worker", new_model, gauges, {"partitions": "2"}) as session,
    ):
        session.run(
            lambda: letters.reached(LIMIT) and predictions.reached(GOOD) and scraped(address) >= HELD_BACK
        )
        assert written() == (LIMIT, Counter({1: GOOD}))
        monkeypatch.setattr(storm, "MINUTE", 0.0)
        session.run(lambda: letters.reached(POISON) and predictions.reached(2 * GOOD))
    assert written() == (POISON, Counter({0: GOOD, 1: GOOD}))
