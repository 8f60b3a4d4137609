"""One pipeline on the tests' broker: its topics, its workers as real processes, what they wrote."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import polars as pl
from confluent_kafka import Consumer, IsolationLevel, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec

from pipeline.config.settings import Join, Kafka, Learner
from pipeline.config.topics import Topics
from pipeline.features.tables import Tables
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.new_client import LIBRDKAFKA_LOGGER
from pipeline.kafka.clients import groupless_consumer
from pipeline.kafka.topics import create
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.records.decoding import INTERACTION_DECODER, LABEL_DECODER
from pipeline.records.encoding import encode
from pipeline.records.inputs import RawMessage
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.sources.kuairec import read_events
from pipeline.sources.synth.files import write_files
from pipeline.sources.synth.size import Size
from pipeline.task.record_queue import Position
from pipeline.task.task import Task
from pipeline.worker.encoder import RecordEncoder
from tests.support.entries import entries, queued
from tests.support.forked import CommandProcess, ForkedCommand

TIMEOUT = 300.0
"""Seconds after which nothing is waited for any more. On a busy machine little is late before that."""
READY = re.compile(rb'(\] |")ready\b')
"""Logged by a worker that can be told to stop."""
FETCH_WAIT = 500
"""Milliseconds for which a broker holds a fetch of a `Follower`, who asks for no ends of partitions."""
AHEAD = 1_000
"""Outcomes that a worker which is to be kept busy has still to come to."""
FORKS = [sys.executable, "-c", "from pipeline.cli import main; main()"]


class Written(NamedTuple):
    """A record as a read-committed reader finds it."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: list[tuple[str, bytes]]


class Message(NamedTuple):
    """Something to produce."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int = 0


def until(condition: Callable[[], bool], what: str, process: CommandProcess | None = None) -> None:
    """Wait for a condition; fail when it does not come, or when the process ends before.

    Questions take processor time from what is waited for, so a pause follows each that is as long.
    """
    end = time.monotonic() + TIMEOUT
    asked = time.monotonic()
    while not condition():
        assert process is None or process.poll() is None, f"the worker ended before {what}"
        answered = time.monotonic()
        assert answered < end, f"{what} did not come within {TIMEOUT:.0f} s"
        time.sleep(max(0.01, answered - asked))
        asked = time.monotonic()


def settled(bootstrap: str, topic_partitions: list[TopicPartition]) -> bool:
    """Whether no transaction is open: what is written last was committed, or taken back.

    Asked by a new client: one that has seen the broker restart goes on asking as if it had not.
    """
    client = Admin(Kafka(bootstrap=bootstrap))
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # lacks its types
    levels = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
    answers = [
        client.list_offsets(dict.fromkeys(topic_partitions, latest), isolation_level=level)
        for level in levels
    ]
    committed, written = (
        [answer[topic_partition].result(TIMEOUT).offset for topic_partition in topic_partitions]
        for answer in answers
    )
    return committed == written


def input_producer(bootstrap: str) -> Producer:
    """A producer with the partitioner that the pipeline asks for."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "enable.idempotence": True,  # else a retry may change the order
            "linger.ms": 20,
            "message.max.bytes": 32_000_000,
        },
        logger=LIBRDKAFKA_LOGGER,
    )


class Follower:
    """Counts the committed records of a topic as they come."""

    def __init__(self, kafka: Kafka, topic: str, partitions: int) -> None:
        self._consumer: Consumer = groupless_consumer(kafka, FETCH_WAIT)
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self.count = 0

    def reached(self, count: int) -> bool:
        """Whether that many have come."""
        messages = self._consumer.consume(10_000, 0.02)
        self.count += sum(message.error() is None for message in messages)
        return self.count >= count

    def close(self) -> None:
        self._consumer.close()


class Pipeline:
    """A pipeline under its own prefix and group; its inputs may have settings beside the usual ones."""

    def __init__(
        self,
        bootstrap: str,
        prefix: str,
        folder: Path,
        partitions: int = 1,
        *,
        replication: int = 1,
        topics: Topics | None = None,
        **inputs: str,
    ) -> None:
        self.kafka = Kafka(bootstrap=bootstrap, prefix=prefix, group=f"{prefix}group")
        self.topics = topics or Topics(prefix)
        self.partitions = partitions
        self.folder = folder
        self.environment: dict[str, str] = {}
        """Settings for the workers, by variable."""
        self.options: tuple[str, ...] = ()
        """Further options of `forks run`."""
        self.program: list[str] | None = None
        """What starts the workers, in place of a fork of a process that has imported everything."""
        client = Admin(Kafka(bootstrap=bootstrap))
        if inputs:  # at once: a setting that is changed is in force only some time later
            own = {name.replace("_", "."): value for name, value in inputs.items()}
            given = [
                NewTopic(name, partitions, replication, config=self.topics.settings(name) | own)
                for name in self.topics.inputs
            ]
            for created in client.create_topics(given).values():
                created.result(TIMEOUT)
        create(client, self.topics, partitions, replication)

    def produce(self, messages: Iterable[Message]) -> None:
        """Write messages with the partitioner that the pipeline asks for."""
        producer = input_producer(self.kafka.bootstrap)
        for topic, key, value, timestamp in messages:
            producer.produce(topic, value, key, timestamp=timestamp)
            producer.poll(0)
        assert producer.flush(TIMEOUT) == 0

    def produce_events(self, events: pl.DataFrame) -> None:
        """Write interactions and labels as `pipeline.sources.kuairec.read_events` gives them."""
        self.produce(interactions_of(self.topics, events))
        self.produce(labels_of(self.topics, events))

    def start_worker(self, instance: str | None = "worker", log_path: Path | None = None) -> CommandProcess:
        """Start `forks run`; its log goes to a file in the folder, by default to that of its name."""
        kafka, log_path = self.kafka, log_path or self.log_of(instance)
        arguments = ["run", "--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group]
        arguments += [*(("--instance", instance) if instance else ()), *self.options]
        environment = os.environ | self.environment
        if self.program is None:
            return ForkedCommand(arguments, log_path, environment, self.folder)
        with log_path.open("ab") as log:
            return subprocess.Popen(
                [*self.program, *arguments], stderr=log, stdout=log, cwd=self.folder, env=environment
            )

    def log_of(self, instance: str | None) -> Path:
        """Where workers of that name log to."""
        return self.folder / f"{self.kafka.prefix}{instance}.log"

    @contextmanager
    def worker(self, instance: str | None = "worker") -> Iterator[CommandProcess]:
        """A worker that is told to stop at the end and has to leave with 0."""
        log = self.log_of(instance)
        begin = log.stat().st_size if log.exists() else 0
        process = self.start_worker(instance)
        try:
            yield process
            until(lambda: bool(READY.search(log.read_bytes(), begin)), "its start", process)
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT) == 0
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def follow(self, topic: str) -> Iterator[Follower]:
        """Count the committed records of a topic."""
        follower = Follower(self.kafka, topic, self.partitions)
        try:
            yield follower
        finally:
            follower.close()

    def run_until(self, counts: dict[str, int], instance: str | None = "worker") -> None:
        """Run a worker until topics hold that many records, then stop it in good order.

        All that it has written can be read then: a transaction's records are hidden for a moment still when
        the one who committed it knows that it has come about.
        """
        with self.worker(instance) as process:
            for topic, count in counts.items():
                with self.follow(topic) as follower:
                    until(partial(follower.reached, count), f"{count} records in {topic}", process)
        until(self.settled, "the end of all transactions")

    def settled(self) -> bool:
        """Whether no transaction of a worker is open."""
        topics, numbers = self.topics.outputs, range(self.partitions)
        bootstrap = self.kafka.bootstrap
        return settled(bootstrap, [TopicPartition(topic, number) for topic in topics for number in numbers])

    def read(self, topic: str) -> list[Written]:
        """All that is committed in a topic, partition by partition."""
        consumer = groupless_consumer(self.kafka)
        try:
            written = [w for number in range(self.partitions) for w in read_to_end(consumer, topic, number)]
        finally:
            consumer.close()
        return written

    def read_json(self, topic: str) -> list[dict[str, Any]]:
        """The committed values of a topic, decoded."""
        return [json.loads(written.value or b"") for written in self.read(topic)]


class Feed:
    """Gives workers their inputs bit by bit, so that they have work for as long as a test needs them to.

    Its workers never take an input that pauses for one that has ended. So whatever arrives when, and however
    fast they are, what they write is what one go over all of it would have come to. They keep back the last
    events of each bit, until more comes or `finish` has them processed.

    Parameters
    ----------
    pipeline
        Its workers are to be started after this.
    events
        In the order of time. Any number: those that are never sent cost nothing.
    """

    def __init__(self, pipeline: Pipeline, events: pl.DataFrame) -> None:
        self._pipeline = pipeline
        self._events = events
        self._until = 0
        """Labels that were known before this time have been sent."""
        self.interactions_sent = 0
        """Events whose interaction has been sent."""
        self.labels = 0
        """Labels that have been sent. Where there is one partition, so many outcomes are sure to come."""
        pipeline.environment = pipeline.environment | {"FORKS_JOIN__MAX_IDLE": "1h"}

    @property
    def events(self) -> pl.DataFrame:
        """Those of which something was sent."""
        return self._events.head(self.interactions_sent)

    def send(self, count: int) -> None:
        """Send so many more events, with the labels that are known by the time of the last of them."""
        new = self._events[self.interactions_sent : self.interactions_sent + count]
        assert len(new) == count, "there are no more events"
        self.interactions_sent += count
        self._pipeline.produce(interactions_of(self._pipeline.topics, new))
        self._send_labels(new["timestamp"][-1])

    def keep_ahead(self, follower: Follower) -> None:
        """Send a lot where hardly anything is left to do, so that there mostly is without sending."""
        follower.reached(0)
        if self.labels - follower.count < AHEAD:
            self.send(2 * AHEAD)

    def finish(self, instance: str | None = "worker") -> None:
        """Send the labels that are left, and let a worker that waits for nothing process what there is."""
        self._send_labels(2**62)
        del self._pipeline.environment["FORKS_JOIN__MAX_IDLE"]
        self._pipeline.run_until({self._pipeline.topics.outcomes: self.interactions_sent}, instance)

    def _send_labels(self, before: int) -> None:
        known = pl.col("label_timestamp").is_between(self._until, before, closed="left")
        labels = self.events.filter(known)
        self._until = before
        self.labels += len(labels)
        self._pipeline.produce(labels_of(self._pipeline.topics, labels))


def stop_in_a_transaction(
    process: CommandProcess, pipeline: Pipeline, feed: Feed, follower: Follower
) -> None:
    """Put a worker to sleep while it has a transaction open, and work left for when it wakes."""

    def asleep_at_work() -> bool:
        feed.keep_ahead(follower)
        process.send_signal(signal.SIGSTOP)
        if pipeline.settled():
            process.send_signal(signal.SIGCONT)
            return False
        return True

    until(asleep_at_work, "a transaction to sleep in", process)


def read_to_end(consumer: Consumer, topic: str, partition: int) -> Iterator[Written]:
    """What is committed in a partition, once no transaction that is open hides some of it."""
    topic_partition = TopicPartition(topic, partition, 0)
    consumer.assign([topic_partition])
    while True:
        for message in consumer.consume(10_000, 0.2):
            error = message.error()
            if error is None:
                headers = cast(list[tuple[str, bytes]], message.headers() or [])
                yield Written(partition, message.key(), message.value(), message.timestamp()[1], headers)
                continue
            assert error.code() == KafkaError._PARTITION_EOF, error.str()
            _, end = consumer.get_watermark_offsets(topic_partition, cached=True)
            if message.offset() == end:
                return


def interactions_of(topics: Topics, events: pl.DataFrame) -> Iterator[Message]:
    """The events' interactions, as messages."""
    for row in events.iter_rows(named=True):
        record = KuaiRecInteraction(
            row["event_id"], row["user_id"], row["video_id"], row["timestamp"], row["video_duration"]
        )
        yield Message(topics.interactions, str(row["user_id"]).encode(), encode(record), row["timestamp"])


def labels_of(topics: Topics, events: pl.DataFrame) -> Iterator[Message]:
    """The events' labels, as messages, by the time they became known."""
    for row in events.sort("label_timestamp", maintain_order=True).iter_rows(named=True):
        time_known = row["label_timestamp"]
        record = WatchLabel(
            row["event_id"],
            row["user_id"],
            row["video_id"],
            time_known,
            row["play_duration"],
            row["watch_ratio"],
        )
        yield Message(topics.labels, str(row["user_id"]).encode(), encode(record), time_known)


ALIGNED = {"FORKS_SHARING__ALIGN": "4h", "FORKS_SHARING__INTERVAL": "20"}
"""Settings with which partitions share, and yet write the same bytes each time. Invented events last three
days."""


def invented_events(folder: Path, count: int, seed: int = 3) -> pl.DataFrame:
    """Events of a small invented world."""
    write_files(folder, Size(events=count, users=200, videos=400, days=3, seed=seed))
    return read_events(folder).frame


def in_one_go(pipeline: Pipeline, events: pl.DataFrame) -> tuple[list[bytes], list[bytes]]:
    """Predictions and outcomes of the pure core for the same messages, in one partition."""
    model = Model(learner_settings(Learner(), 0), Tables(), 1_000_000)
    task = Task(0, model, Join(), Position(0), Position(0))
    interactions = list(interactions_of(pipeline.topics, events))
    labels = list(labels_of(pipeline.topics, events))
    for queue, messages in ((task.interactions, interactions), (task.labels, labels)):
        sources = [RawMessage(m.topic, 0, offset, m.key, m.value) for offset, m in enumerate(messages)]
        decoder = INTERACTION_DECODER if queue is task.interactions else LABEL_DECODER
        queue.feed(queued(entries(sources, decoder, latest=2**53)))
        queue.at_end = True
    batch = task.advance(len(interactions) + len(labels))
    encoded = RecordEncoder().encode(batch)
    return [*encoded.predictions.values], [*encoded.outcomes.values]


def assert_as_in_one_go(pipeline: Pipeline, events: pl.DataFrame) -> None:
    """What workers have committed has to be, byte for byte, what the pure core says."""
    predictions, outcomes = in_one_go(pipeline, events)
    assert [written.value for written in pipeline.read(pipeline.topics.predictions)] == predictions
    assert [written.value for written in pipeline.read(pipeline.topics.outcomes)] == outcomes
