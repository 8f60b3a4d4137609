from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.request import urlopen

import pytest

from pipeline.config.settings import Config, Metrics, Worker
from pipeline.features.tables import Tables
from pipeline.kafka.partitioner import partition
from pipeline.model.model import Model
from pipeline.monitoring.monitor import Monitor
from pipeline.records.encoding import encode
from pipeline.worker import source, throttle
from pipeline.worker.session import Session
from pipeline.worker.worker import serve_monitor
from tests.integration.harness import Message, Pipeline
from tests.support.builders import interaction, small_learner

REJECTED, GOOD, LIMIT = 60, 20, 20
THROTTLED_METRIC = {
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


def test_too_many_dead_letters_pause_only_their_partition_and_lose_nothing(
    bootstrap: str, topic_prefix: str, tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    topics = pipeline.topics
    rejected_user, valid_user = (
        next(u for u in range(99) if partition(b"%d" % u, 2) == number) for number in (0, 1)
    )
    pipeline.produce(Message(topics.interactions, b"%d" % rejected_user, b"{") for _ in range(REJECTED))
    for user in (rejected_user, valid_user):
        interactions = [interaction(f"{user}-{n}", n, user) for n in range(GOOD)]
        pipeline.produce(Message(topics.interactions, b"%d" % user, encode(each)) for each in interactions)
    address = f"127.0.0.1:{free_port}"
    config = Config(
        kafka=pipeline.kafka,
        worker=Worker(batch=1, dead_letters=LIMIT),
        metrics=Metrics(address=address),
    )
    monkeypatch.setattr(source, "MIN_READ_AHEAD", 0)
    monkeypatch.setattr(throttle, "MINUTE", float("inf"))
    monitor = Monitor(config.metrics)

    def written() -> tuple[int, Counter[int]]:
        predicted = Counter(each.partition for each in pipeline.read(topics.predictions))
        return len(pipeline.read(topics.dead_letters)), predicted

    with (
        pipeline.follow(topics.predictions) as predictions,
        pipeline.follow(topics.dead_letters) as dead_letters,
        serve_monitor(monitor, config, "worker"),
        Session(config, "worker", new_model, monitor, {"partitions": "2"}) as session,
    ):
        session.start()
        session.run(
            lambda: (
                dead_letters.reached(LIMIT)
                and predictions.reached(GOOD)
                and scraped(address) >= THROTTLED_METRIC
            )
        )
        assert written() == (LIMIT, Counter({1: GOOD}))
        monkeypatch.setattr(throttle, "MINUTE", 0.0)
        session.run(lambda: dead_letters.reached(REJECTED) and predictions.reached(2 * GOOD))
    assert written() == (REJECTED, Counter({0: GOOD, 1: GOOD}))
