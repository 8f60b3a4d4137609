"""A follower beside real workers, which are killed, promoted and installed anew."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
import pytest
from confluent_kafka import TopicPartition

from pipeline.config.loader import load
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.offsets import PartitionId, high_watermarks
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction
from pipeline.serving.answers import PartitionFigures, PartitionNotReadyError, Scores
from pipeline.serving.candidates import CandidateType
from pipeline.serving.follower import Follower
from pipeline.serving.score_log import ScoreLog, ScoreLogLine
from tests.chaos.broker import Broker
from tests.integration.harness import TIMEOUT, Feed, Pipeline, invented_events, until
from tests.integration.test_live_tables import (
    BEGIN,
    COURIERS,
    EVENTS,
    RESTAURANTS,
    STEP,
    World,
    named,
    pipeline_at,
)
from tests.integration.test_rebuild import forks
from tests.integration.test_stream import command
from tests.support.fake_registry import fake_registry

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


Wanted: TypeAlias = tuple[int, Id, list[Id]]
"""A time in milliseconds, a user, and items."""


def videos_of(events: pl.DataFrame) -> Callable[[int], Wanted]:
    """Some videos for the user of the next event, and one that nobody has seen."""

    def wanted(number: int) -> Wanted:
        event = events.row(number % len(events), named=True)
        videos = [events["video_id"][(number + 7 * n) % len(events)] for n in range(4)]
        return event["timestamp"], event["user_id"], [*videos, 10**9]

    return wanted


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
    """What a follower was asked and has answered, logged as `forks serve` does it.

    Parameters
    ----------
    pipeline
        What is followed.
    path
        The log.
    wanted
        Returns the time, the user and the items of a request, by its number.
    """

    def __init__(self, pipeline: Pipeline, path: Path, wanted: Callable[[int], Wanted]) -> None:
        self._kind = CandidateType.of(pipeline.topics.stream)
        self._wanted = wanted
        self._log = ScoreLog(path)
        self.versions: list[set[tuple[int, int]]] = [set() for _ in range(pipeline.partitions)]
        """Of each partition, the epochs and versions that have answered."""
        self.count = 0

    def ask(self, follower: Follower, challengers: Sequence[str | None] = (None,)) -> None:
        """Ask for scores, if the partition answers."""
        time_, user, items = self._wanted(self.count)
        made = [self._kind.make(time_, (user, each), ()) for each in items]
        challenger = challengers[self.count % len(challengers)]
        self.count += 1
        try:
            with follower.lend_model(follower.partition_of(user)) as model:
                scores = model.score_candidates(made, challenger)
        except PartitionNotReadyError:
            return
        self.log(scores, made, challenger)

    def log(self, scores: Scores, made: Sequence[Interaction], challenger: str | None) -> None:
        self.versions[scores.partition].add((scores.epoch, scores.model_version))
        self._log.write(
            ScoreLogLine(
                at=int(time.time() * 1000),
                partition=scores.partition,
                epoch=scores.epoch,
                arithmetic=scores.arithmetic,
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


def ends(pipeline: Pipeline, *topics: str) -> dict[PartitionId, int]:
    """The end of every partition of topics, open transactions included; of all, if none is named."""
    numbers = range(pipeline.partitions)
    wanted = [PartitionId(topic, number) for topic in topics or pipeline.topics.all for number in numbers]
    return high_watermarks(Admin(pipeline.kafka), wanted)


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


@pytest.mark.slow
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
    answers = Answers(pipeline, log := tmp_path / "scores.jsonl", videos_of(events))
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
    assert min(len(each) for each in answers.versions) > 6, "few models were seen between commits"
    assert {epoch for each in answers.versions for epoch, _ in each} == {0, 1, 2}
    found = audited(pipeline, log, **INSTALLED)
    lines = len(log.read_bytes().splitlines())
    assert lines > 300
    assert found["scores"] == {"derived": 5 * lines, "not_derived": {}, "first": None}


def test_outcomes_lost_to_retention_are_said_and_a_later_snapshot_is_gone_on_from(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    """The worker lives and needs none of them; whoever starts anew does, until the next snapshot."""
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 4_000)
    feed = Feed(pipeline, events)
    pipeline.environment |= {"FORKS_WORKER__BATCH": "100", "FORKS_CHECKPOINT__OUTCOMES": "700"}
    answers = Answers(pipeline, log := tmp_path / "scores.jsonl", videos_of(events))
    with pipeline.worker() as worker, pipeline.follow(pipeline.topics.outcomes) as outcomes:
        feed.send(1_200)
        until(partial(outcomes.reached, feed.labels), "outcomes after a snapshot", worker)
        with following(pipeline) as before:
            wait_until_caught_up(before)
            [last] = ends(pipeline, pipeline.topics.outcomes).values()
            gone = TopicPartition(pipeline.topics.outcomes, 0, last - 20)
            client = Admin(pipeline.kafka)  # while it lives, the answer comes
            client.delete_records([gone])[gone].result(TIMEOUT)
            with following(pipeline) as follower:
                until(lambda: figures(follower)[0].state == "failed", "the loss")
                [figure] = figures(follower)
                assert "are not in the log any more: a later snapshot is needed" in (figure.reason or "")
                not_ready = pytest.raises(PartitionNotReadyError, match="partition 0 is not ready: outcomes")
                with not_ready, follower.lend_model(0):
                    pass
                feed.send(1_500)
                until(partial(outcomes.reached, feed.labels), "outcomes after another snapshot", worker)
                for each in (before, follower):
                    wait_until_caught_up(each)
                    answers.ask(each)
                assert figures(follower)[0].reason is None
    answers.close()
    first, second = (json.loads(line) for line in log.read_text().splitlines())
    assert first["model_version"] == second["model_version"] == feed.labels
    assert figures(before)[0].model_version == feed.labels


@pytest.mark.slow
def test_answers_go_on_while_brokers_are_away(tmp_path: Path) -> None:
    with Broker(tmp_path / "broker") as broker:
        pipeline = Pipeline(broker.bootstrap, "away-", tmp_path)
        pipeline.environment = {"FORKS_WORKER__BATCH": "50", "FORKS_WORKER__TRANSACTION_TIMEOUT": "5s"}
        events = invented_events(tmp_path, 2_000)
        feed = Feed(pipeline, events)
        answers = Answers(pipeline, tmp_path / "scores.jsonl", videos_of(events))
        with pipeline.worker() as worker, following(pipeline) as follower:
            feed.send(600)
            with pipeline.follow(pipeline.topics.outcomes) as outcomes:
                until(partial(outcomes.reached, feed.labels), "outcomes", worker)
            wait_until_caught_up(follower)
            [before] = figures(follower)
            broker.kill()
            until(lambda: follower.figures.brokers is not None, "notice of it")
            answers.ask(follower)
            answers.close()
            assert answers.versions == [{(0, before.model_version)}]
            [while_away] = figures(follower)
            assert (while_away.state, while_away.model_version) == ("following", before.model_version)
            assert while_away.current_at is not None
            assert while_away.current_at < time.monotonic() - 0.5
            broker.start()
            feed.send(600)
            with pipeline.follow(pipeline.topics.outcomes) as outcomes:
                until(partial(outcomes.reached, feed.labels), "outcomes after that", worker)
            wait_until_caught_up(follower)
            assert figures(follower)[0].model_version == feed.labels
            assert follower.figures.brokers is None


@pytest.mark.slow
def test_live_tables_signed_records_and_outputs_in_avro_are_followed_too(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pytest.importorskip("fastavro", reason="the extra `registry` is not installed")
    key = tmp_path / "key"
    key.write_bytes(b"sixteen bytes or more")
    with fake_registry() as registry:
        pipeline = pipeline_at(bootstrap, topic_prefix, tmp_path / "first", f"{topic_prefix}in-")
        file = pipeline.folder / "stream.toml"
        text = file.read_text().replace("[checkpoint]", f'[checkpoint]\nkey = "{key}"')
        text += f'\n[stream.outputs]\nformat = "avro"\n[registry]\nurl = "{registry.url}"\n'
        file.write_text(text)
        world, log = World(), tmp_path / "scores.jsonl"

        def wanted(number: int) -> Wanted:
            at = BEGIN + STEP * (number % EVENTS)
            return at, f"c{number % COURIERS}", [number % RESTAURANTS, (number + 3) % RESTAURANTS, 10**9]

        answers = Answers(pipeline, log, wanted)
        with following(pipeline, file) as follower:
            pipeline.produce(named(pipeline, [*world.tables(), *world.inputs]))
            with pipeline.follow(pipeline.topics.outcomes) as outcomes:
                worker = pipeline.start_worker()
                reached = partial(outcomes.reached, EVENTS // 3)
                until(partial(asked, answers, follower, (None,), reached), "outcomes", worker)
                worker.kill()
                worker.wait()
                with pipeline.worker() as worker:
                    reached = partial(outcomes.reached, EVENTS)
                    until(partial(asked, answers, follower, (None,), reached), "all outcomes", worker)
            wait_until_caught_up(follower)
            for _ in range(50):
                answers.ask(follower)
            with following(pipeline, file) as late:
                wait_until_caught_up(late)
                for _ in range(50):
                    answers.ask(late)
        answers.close()
        group = ("--group", pipeline.kafka.group)
        found = json.loads(command(pipeline, "audit", "--json", "--scores", str(log), *group))
        lines = log.read_text().splitlines()
        assert found["scores"] == {"derived": 3 * len(lines), "not_derived": {}, "first": None}
        assert found["differences"] == 0
        tables = {tuple(json.loads(line)["tables"].values()) for line in lines}
        assert len(tables) > 3
