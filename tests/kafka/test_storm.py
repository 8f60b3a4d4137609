from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pipeline import storm
from pipeline.config import Config, Worker
from pipeline.features import Tables
from pipeline.model import Model
from pipeline.partition import partition
from pipeline.records import encode
from pipeline.session import Session
from tests.kafka.harness import Message, Pipeline
from tests.pipeline.builders import interaction, small_learner

POISON, GOOD, LIMIT = 30, 20, 20


def test_a_storm_of_poison_holds_its_own_partition_back_and_loses_nothing(
    bootstrap: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    topics = pipeline.topics
    stormy, calm = (next(u for u in range(99) if partition(b"%d" % u, 2) == place) for place in (0, 1))
    pipeline.produce(Message(topics.interactions, b"%d" % stormy, b"{") for _ in range(POISON))
    for user in (stormy, calm):
        shown = [interaction(f"{user}-{n}", n, user) for n in range(GOOD)]
        pipeline.produce(Message(topics.interactions, b"%d" % user, encode(each)) for each in shown)
    config = Config(kafka=pipeline.kafka, worker=Worker(batch=5, dead_letters=LIMIT))

    def written() -> tuple[int, Counter[int]]:
        predicted = Counter(each.partition for each in pipeline.read(topics.predictions))
        return len(pipeline.read(topics.dead_letters)), predicted

    with (
        pipeline.follow(topics.predictions) as predictions,
        pipeline.follow(topics.dead_letters) as letters,
        Session(
            config, "worker", lambda: Model(small_learner(), Tables(), 10), {"partitions": "2"}
        ) as session,
    ):
        monkeypatch.setattr(storm, "MINUTE", float("inf"))
        session.run(lambda: letters.reached(LIMIT) and predictions.reached(GOOD))
        assert written() == (LIMIT, Counter({1: GOOD}))
        monkeypatch.setattr(storm, "MINUTE", 0.0)
        session.run(lambda: letters.reached(POISON) and predictions.reached(2 * GOOD))
    assert written() == (POISON, Counter({0: GOOD, 1: GOOD}))
