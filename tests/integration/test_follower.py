"""A follower beside real workers, which are killed, promoted and installed anew."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from confluent_kafka import TopicPartition

from pipeline.config.loader import load
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.offsets import PartitionId, high_watermarks
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction
from pipeline.records.kuairec import KuaiRecInteraction
from pipeline.serving.answers import PartitionFigures, PartitionNotReadyError, Scores
from pipeline.serving.candidates import CandidateType
from pipeline.serving.follower import Follower
from pipeline.serving.score_log import ScoreLog, ScoreLogLine
from tests.integration.harness import TIMEOUT, Pipeline, invented_events, until
from tests.integration.test_rebuild import forks

CHALLENGERS = {
    "wider": {"learner": "forks", "budget": 60, "cycle": 200},
    "linear": {"learner": "arow"},
}
BEFORE = {"FORKS_CHALLENGERS": json.dumps(CHALLENGERS)}
PROMOTED = {
    "FORKS_LEARNER": json.dumps({"budget": 60, "cycle": 200}),
    "FORKS_CHALLENGERS": json.dumps({"former": {"learner": "forks"}, "linear": CHALLENGERS["linear"]}),
}
INSTALLED = PROMOTED | {"FORKS_LEARNER": json.dumps({"budget": 40, "cycle": 200})}


@contextmanager
def following(pipeline: Pipeline, config: Path | None = None) -> Iterator[Follower]:
    """A follower of the pipeline's group, under the settings of a configuration that names no learner."""
    kafka = pipeline.kafka
    flags = {"kafka.bootstrap": kafka.bootstrap, "kafka.prefix": kafka.prefix, "kafka.group": kafka.group}
    follower = Follower(load(config, flags))
    follower.start()
    try:
        yield follower
    finally:
        follower.stop()


class Answers:
    """What a follower was asked and has answered, logged as `forks serve` does it."""

    def __init__(self, pipeline: Pipeline, events: pl.DataFrame, path: Path) -> None:
        self._kind = CandidateType.of(pipeline.topics.stream)
        self._events = events
        self._log = ScoreLog(path)
        self.versions: list[set[tuple[int, int]]] = [set() for _ in range(pipeline.partitions)]
        """Of each partition, the epochs and versions that have answered."""
        self.count = 0

    def ask(self, follower: Follower, challengers: Sequence[str | None] = (None,)) -> None:
        """Ask for the scores of some videos for the user of the next event, if the partition answers."""
        event = self._events.row(self.count % len(self._events), named=True)
        videos = [self._events["video_id"][(self.count + 7 * n) % len(self._events)] for n in range(4)]
        made = [self._candidate(event["timestamp"], event["user_id"], each) for each in [*videos, 10**9]]
        challenger = challengers[self.count % len(challengers)]
        self.count += 1
        partition = follower.partition_of(event["user_id"])
        try:
            scores = follower.score(partition, made, challenger=challenger)
        except PartitionNotReadyError:
            return
        self.log(scores, made, challenger)

    def _candidate(self, timestamp: int, user: Id, video: Id) -> Interaction:
        return self._kind.make(timestamp, (user, video), ())

    def log(self, scores: Scores, made: Sequence[Interaction], challenger: str | None) -> None:
        self.versions[scores.partition].add((scores.epoch, scores.model_version))
        self._log.write(
            ScoreLogLine(
                at=int(time.time() * 1000),
                partition=scores.partition,
                epoch=scores.epoch,
                model_version=scores.model_version,
                as_of=scores.as_of,
                tables=dict(scores.tables),
                challenger=challenger,
                time=made[0].timestamp,
                ids=[[*each.ids] for each in made],
                features=[[*self._kind.features(each)] for each in made],
                scores=scores.scores,
            )
        )

    def close(self) -> None:
        self._log.close()


def figures(follower: Follower) -> tuple[PartitionFigures, ...]:
    return follower.figures.partitions


def caught_up(follower: Follower, since: float) -> bool:
    """Whether all that was committed at a time is learned."""
    return all(each.current_at is not None and each.current_at >= since for each in figures(follower))


def wait_until_caught_up(follower: Follower, meanwhile: Callable[[], None] = lambda: None) -> None:
    since = time.monotonic()

    def reached() -> bool:
        meanwhile()
        return caught_up(follower, since)

    until(reached, f"all that is committed; {follower.figures}")


def ends(pipeline: Pipeline) -> dict[PartitionId, int]:
    """The end of every partition of every topic, open transactions included."""
    topics = [PartitionId(topic, n) for topic in pipeline.topics.all for n in range(pipeline.partitions)]
    return high_watermarks(Admin(pipeline.kafka), topics)


def audited(pipeline: Pipeline, log: Path, *options: str, **settings: str) -> dict[str, Any]:
    result = forks(pipeline, "audit", "--json", "--scores", str(log), *options, **settings)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def asked(
    answers: Answers, follower: Follower, challengers: Sequence[str | None], condition: Callable[[], bool]
) -> bool:
    """Ask a few times, and say whether a condition holds."""
    for _ in range(5):
        answers.ask(follower, challengers)
    return condition()


def work(
    pipeline: Pipeline, outcomes: int, ask: Callable[[Callable[[], bool]], bool], kills: int = 1
) -> None:
    """Let workers come to so many outcomes while a follower is asked; some are killed on the way."""
    with pipeline.follow(pipeline.topics.outcomes) as follower:
        for left in range(kills, 0, -1):
            worker = pipeline.start_worker()
            reached = partial(follower.reached, outcomes - 300 * left)
            until(partial(ask, reached), "outcomes", worker)
            worker.kill()
            worker.wait()
        with pipeline.worker() as worker:
            until(partial(ask, partial(follower.reached, outcomes)), f"{outcomes} outcomes", worker)
    until(pipeline.settled, "the end of all transactions")


def change(pipeline: Pipeline, *command: str, **settings: str) -> None:
    """Change the group's settings, once its last worker does not count as a member any more."""

    def changed() -> bool:
        result = forks(pipeline, *command, **settings)
        assert result.exit_code == 0 or "there are members" in str(result.exception), result.output
        return result.exit_code == 0

    until(changed, f"forks {command[0]}")


def test_answers_follow_from_the_topics_while_workers_are_killed_promoted_and_installed_anew(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    """The follower starts before the group has committed anything, and is never told of other settings."""
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    events = invented_events(tmp_path, 3_000)
    third = len(events) // 3
    own = {
        "FORKS_WORKER__BATCH": "40",
        "FORKS_WORKER__SESSION_TIMEOUT": "6s",
        "FORKS_CHECKPOINT__OUTCOMES": "300",
        "FORKS_SHARING__INTERVAL": "20",
    }
    answers = Answers(pipeline, events, log := tmp_path / "scores.jsonl")
    with following(pipeline) as follower:
        until(lambda: all(each.state == "following" for each in figures(follower)), "a new model")
        for _ in range(20):
            answers.ask(follower)
        assert answers.versions == [{(0, 0)}] * 2

        pipeline.produce_events(events[:third])
        pipeline.environment = BEFORE | own
        work(pipeline, third, partial(asked, answers, follower, (None,)), kills=2)
        wait_until_caught_up(follower)
        assert sum(each.model_version for each in figures(follower)) == third
        assert [each.challengers for each in figures(follower)] == [("linear", "wider")] * 2

        change(pipeline, "promote", "wider", **BEFORE)
        until(lambda: [each.epoch for each in figures(follower)] == [1, 1], "the promoted learner")
        assert [each.challengers for each in figures(follower)] == [("former", "linear")] * 2
        pipeline.produce_events(events[third : 2 * third])
        pipeline.environment = PROMOTED | own
        ask = partial(asked, answers, follower, (None, "former", "linear"))
        work(pipeline, 2 * third, ask)
        wait_until_caught_up(follower)

        change(pipeline, "rebuild", "--set", "learner.budget=40", "--install", **PROMOTED)
        pipeline.produce_events(events[2 * third :])
        pipeline.environment = INSTALLED | own
        work(pipeline, len(events), ask)
        wait_until_caught_up(follower)
        assert [each.epoch for each in figures(follower)] == [2, 2]
        ask(lambda: True)

        before = ends(pipeline)
        for _ in range(100):
            answers.ask(follower)
        wait_until_caught_up(follower)
        assert ends(pipeline) == before
    answers.close()
    assert min(len(each) for each in answers.versions) > 20
    assert {epoch for each in answers.versions for epoch, _ in each} == {0, 1, 2}
    found = audited(pipeline, log, **INSTALLED)
    lines = len(log.read_bytes().splitlines())
    assert lines > 300
    assert found["scores"] == {"derived": 5 * lines, "not_derived": {}, "first": None}
