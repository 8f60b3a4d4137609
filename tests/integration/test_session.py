"""A session that loses its partitions and gets them back: what it kept of them may be out of date."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Timer

import pytest
from confluent_kafka import KafkaError, KafkaException

from pipeline.config.settings import Config, Worker
from pipeline.kafka.committed import CommittedPosition
from pipeline.kafka.deadline import BackgroundCall
from pipeline.model.factory import ModelFactory
from pipeline.monitoring.monitor import Monitor
from pipeline.worker.partition import PartitionState
from pipeline.worker.session import Session
from pipeline.worker.transaction import Commit, PartitionCommit
from tests.integration.harness import TIMEOUT, Pipeline, assert_as_in_one_go, invented_events, until


@contextmanager
def session_of(pipeline: Pipeline, name: str) -> Iterator[Session]:
    """A worker's session, in this process."""
    config = Config(kafka=pipeline.kafka, worker=Worker(batch=50))
    factory = ModelFactory(config)
    settings = factory.settings(pipeline.partitions)
    with Session(config, name, factory.new_model, Monitor(config.metrics), settings) as session:
        session.start()
        yield session


def run_until(session: Session, condition: Callable[[], bool], what: str) -> None:
    """Let a session work, and commit, until a condition holds."""
    end = time.monotonic() + TIMEOUT

    def stopping() -> bool:
        assert time.monotonic() < end, f"{what} did not come within {TIMEOUT:.0f} s"
        return condition()

    session.run(stopping)


def state_of(session: Session) -> PartitionState:
    """The state of partition 0; one that was never assigned is closed."""
    partition = session.partitions.get(0)
    return PartitionState.CLOSED if partition is None else partition.state


def learned(session: Session, outcomes: int) -> bool:
    """Whether partition 0 is running and has learned this many outcomes."""
    return (
        state_of(session) is PartitionState.RUNNING
        and session.partitions[0].task.model.outcomes_learned >= outcomes
    )


def leave_group(session: Session) -> None:
    """Leave the group at once, where one that sleeps is missed after a timeout, and work no more."""
    session.consumer.unsubscribe()

    def left() -> bool:
        session.assignment.source.poll(0.1)
        return state_of(session) is not PartitionState.RUNNING

    until(left, "the loss of the partitions")


def test_a_partition_that_others_advanced_is_restored_not_resumed(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 600)
    third = len(events) // 3
    pipeline.produce_events(events)

    def learn(session: Session, outcomes: int) -> None:
        run_until(session, lambda: learned(session, 0), "the partition")
        run_until(session, lambda: learned(session, outcomes), f"{outcomes} outcomes")

    with session_of(pipeline, "sleeper") as sleeper:
        learn(sleeper, third)
        kept = sleeper.partitions[0].task
        leave_group(sleeper)
        assert state_of(sleeper) is PartitionState.KEPT
        with session_of(pipeline, "other") as other:
            learn(other, 2 * third)
        sleeper.subscribe()
        run_until(sleeper, lambda: learned(sleeper, 0), "the partition again")
        assert sleeper.partitions[0].task is not kept
        learn(sleeper, len(events))
    assert_as_in_one_go(pipeline, events)


def test_partitions_that_go_while_a_commit_is_under_way_wait_for_it_and_go_down_with_it(
    bootstrap: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 600)
    pipeline.produce_events(events)
    failing, asked = Event(), Event()

    def fail() -> list[CommittedPosition]:
        assert failing.wait(TIMEOUT)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))

    def commit(parts: Sequence[PartitionCommit], _: object) -> Commit:
        asked.set()
        return Commit(parts, [(None, None) for _ in parts], BackgroundCall(fail), TIMEOUT)

    with session_of(pipeline, "first") as session:
        run_until(session, lambda: learned(session, 200), "200 outcomes")
        monkeypatch.setattr(session.writer, "commit", commit)
        while not asked.is_set():
            session.step()
        answer = Timer(1.0, failing.set)
        answer.start()
        with pytest.raises(KafkaException, match="no answer"):
            leave_group(session)
        assert failing.is_set()
        assert state_of(session) is not PartitionState.KEPT
    pipeline.run_until({pipeline.topics.outcomes: len(events)})
    assert_as_in_one_go(pipeline, events)
