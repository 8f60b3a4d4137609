"""A session that loses its partitions and gets them back: what it kept of them may be out of date."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Timer

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from pipeline.config.tree import Config, Worker
from pipeline.kafka.committed import CommittedPosition
from pipeline.kafka.deadline import BackgroundCall
from pipeline.model.factory import ModelFactory
from pipeline.task.task import Task
from pipeline.worker.metrics import Gauges
from pipeline.worker.session import Session
from pipeline.worker.transaction import Commit, PartitionCommit
from tests.integration.harness import TIMEOUT, Pipeline, assert_as_in_one_go, invented_events, until


@contextmanager
def session_of(pipeline: Pipeline, name: str) -> Iterator[Session]:
    """A worker's session, in this process."""
    config = Config(kafka=pipeline.kafka, worker=Worker(batch=50))
    factory = ModelFactory(config)
    settings = factory.settings(pipeline.partitions)
    with Session(config, name, factory.new_model, Gauges(config), settings) as session:
        yield session


def run_until(session: Session, condition: Callable[[dict[int, Task]], bool], what: str) -> None:
    """Let a session work, and commit, until its tasks are as they should be."""
    end = time.monotonic() + TIMEOUT

    def stopping() -> bool:
        assert time.monotonic() < end, f"{what} did not come within {TIMEOUT:.0f} s"
        return condition(session._tasks)

    session.run(stopping)


def lose_partitions(session: Session) -> None:
    """Leave the group at once, where one that sleeps is missed after a timeout, and work no more."""
    session._consumer.unsubscribe()

    def lost() -> bool:
        session._source.poll(0.1)
        return not session._tasks

    until(lost, "the loss of the partitions")


def test_a_partition_that_others_advanced_is_restored_not_resumed(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 600)
    third = len(events) // 3
    pipeline.produce_events(events)

    def fold(session: Session, outcomes: int) -> None:
        run_until(session, bool, "the partition")
        run_until(session, lambda tasks: tasks[0].model.folded >= outcomes, f"{outcomes} outcomes")

    with session_of(pipeline, "sleeper") as sleeper:
        fold(sleeper, third)
        left = sleeper._tasks[0]
        lose_partitions(sleeper)
        assert sleeper._kept_tasks
        with session_of(pipeline, "other") as other:
            fold(other, 2 * third)
        callbacks = {"on_assign": sleeper._on_assign, "on_revoke": sleeper._on_revoke}
        sleeper._consumer.subscribe(list(sleeper.topics.inputs), **callbacks)
        run_until(sleeper, bool, "the partition again")
        assert sleeper._tasks[0] is not left
        fold(sleeper, len(events))
    assert_as_in_one_go(pipeline, events)


def test_partitions_that_go_while_a_commit_is_under_way_wait_for_it_and_go_down_with_it(
    bootstrap: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 600)
    pipeline.produce_events(events)
    fate = Event()

    def fail() -> list[CommittedPosition]:
        assert fate.wait(TIMEOUT)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))

    def commit(parts: list[PartitionCommit], _: Consumer) -> Commit:
        return Commit(parts, [(None, None) for _ in parts], BackgroundCall(fail), TIMEOUT)

    with session_of(pipeline, "first") as session:
        run_until(session, lambda tasks: bool(tasks) and tasks[0].model.folded >= 200, "200 outcomes")
        monkeypatch.setattr(session._transaction_writer, "commit", commit)
        while session._in_flight._commit is None:
            session._run_once()
        answer = Timer(1.0, fate.set)
        answer.start()
        with pytest.raises(KafkaException, match="no answer"):
            lose_partitions(session)
        assert fate.is_set()
        assert not session._kept_tasks
    pipeline.run_until({pipeline.topics.outcomes: len(events)})
    assert_as_in_one_go(pipeline, events)
