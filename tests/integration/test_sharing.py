"""Workers whose partitions learn from one another, in front of a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import structlog
from confluent_kafka import TopicPartition
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.settings import Kafka
from pipeline.errors import StateError
from pipeline.kafka.access.connection import Admin
from pipeline.records.encoding import encode
from pipeline.records.output_types import KUAIREC_TYPES
from pipeline.records.outputs import EntityCounts, Share
from pipeline.task import inbox as inboxes_of_partitions
from pipeline.task.inbox import Inbox
from pipeline.worker.share_reader import Exchange
from tests.integration.harness import TIMEOUT, Message, Pipeline, input_producer, invented_events, until

INTERVAL = 20


def audit(pipeline: Pipeline) -> str:
    kafka = pipeline.kafka
    group_options = ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group]
    answer = CliRunner().invoke(app, ["audit", *group_options])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def by_partition(pipeline: Pipeline, topic: str) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {number: [] for number in range(pipeline.partitions)}
    for written, value in zip(pipeline.read(topic), pipeline.read_json(topic), strict=True):
        found[written.partition].append(value)
    return found


def halves(events: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    middle = len(events) // 2
    return events[:middle], events[middle:]


@pytest.mark.slow
def test_each_published_share_is_learned_once_by_all_others_whoever_is_killed(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=3)
    pipeline.environment = {
        "FORKS_SHARING__INTERVAL": str(INTERVAL),
        "FORKS_WORKER__BATCH": "50",
        "FORKS_WORKER__SESSION_TIMEOUT": "6s",
        "FORKS_CHECKPOINT__OUTCOMES": "200",
    }
    events = invented_events(tmp_path, 3_000)
    first, second = halves(events)
    count = len(first)
    pipeline.produce_events(first)
    with (
        pipeline.follow(pipeline.topics.outcomes) as follower,
        pipeline.follow(pipeline.topics.shared) as shares,
        pipeline.worker("stays") as stays,
    ):
        dies = pipeline.start_worker("dies")
        try:
            until(partial(follower.reached, 500), "500 outcomes", dies)
        finally:
            dies.kill()
            dies.wait()
        until(partial(follower.reached, len(first)), "the outcomes of the first half", stays)
        until(partial(shares.reached, len(first) // INTERVAL - 3), "shares of the first half", stays)
        for piece in second.iter_slices(300):  # outcomes for the shares to go with, also where they come late
            pipeline.produce_events(piece)
            count += len(piece)
            until(partial(follower.reached, count), f"{count} outcomes", stays)
    published = by_partition(pipeline, pipeline.topics.shared)
    outcomes = by_partition(pipeline, pipeline.topics.outcomes)
    for partition, own in outcomes.items():
        whole = range(0, len(own) // INTERVAL * INTERVAL, INTERVAL)
        assert [(share["since"], share["until"]) for share in published[partition]] == [
            (since, since + INTERVAL) for since in whole
        ]
        for other in published.keys() - {partition}:
            taken = [
                share for outcome in own for share in outcome.get("shared", []) if share["partition"] == other
            ]
            assert taken == published[other][: len(taken)]
            assert len(taken) > len(first) // 3 // INTERVAL // 2
    assert "no difference" in audit(pipeline)


def publish(pipeline: Pipeline, partition: int, numbers: range) -> None:
    producer = input_producer(pipeline.kafka.bootstrap)
    for number in numbers:
        share = Share(partition, number, number + 1, [EntityCounts(3, 1, 1, 0.5)], [])
        producer.produce(pipeline.topics.shared, encode(share), str(partition), partition)
    assert producer.flush(TIMEOUT) == 0


@contextmanager
def open_exchange(pipeline: Pipeline) -> Iterator[Exchange]:
    exchange = Exchange(pipeline.kafka, pipeline.topics.shared, pipeline.partitions, KUAIREC_TYPES.shares)
    try:
        yield exchange
    finally:
        exchange.close()


def poll(exchange: Exchange, inboxes: list[Inbox], shares: int) -> list[list[tuple[int, int]]]:
    """Read until they have that many in all; which ones, by partition and first outcome."""
    taken: list[list[tuple[int, int]]] = [[] for _ in inboxes]

    def there() -> bool:
        exchange.poll(inboxes)
        for inbox, had in zip(inboxes, taken, strict=True):
            had += [(share.partition, share.since) for share in inbox.drain()]
        return sum(map(len, taken)) >= shares

    until(there, f"{shares} shares")
    return taken


def test_one_consumer_serves_partitions_at_different_offsets(
    bootstrap: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One holds little, so it is full again and again, and one comes later."""
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=3)
    for partition in (1, 2):
        publish(pipeline, partition, range(40))
    monkeypatch.setattr(inboxes_of_partitions, "INBOX_BYTES", 200)
    expected = {partition: [(partition, number) for number in range(40)] for partition in (1, 2)}
    new, old, late = Inbox(0, {}), Inbox(1, {2: 30}), Inbox(2, {1: 35})
    with open_exchange(pipeline) as exchange:
        of_new, of_old = poll(exchange, [new, old], 80 + 10)
        [of_late] = poll(exchange, [late], 5)
        publish(pipeline, 1, range(40, 43))
        later = poll(exchange, [new, old, late], 3 + 3)
    for partition in (1, 2):
        assert [share for share in of_new if share[0] == partition] == expected[partition]
    assert of_old == expected[2][30:]
    assert of_late == expected[1][35:]
    assert later == [[(1, 40), (1, 41), (1, 42)], [], [(1, 40), (1, 41), (1, 42)]]


def test_shares_deleted_before_they_were_read_are_reported_and_skipped(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    publish(pipeline, 1, range(10))
    topic_partition = TopicPartition(pipeline.topics.shared, 1, 6)
    client = Admin(Kafka(bootstrap=bootstrap))
    [deleted] = client.delete_records([topic_partition]).values()
    deleted.result()
    with open_exchange(pipeline) as exchange, structlog.testing.capture_logs() as logs:
        [taken] = poll(exchange, [Inbox(0, {1: 4})], 4)
    assert taken == [(1, number) for number in range(6, 10)]
    [line] = [each for each in logs if each["event"] != "kafka"]  # the client may have met with trouble
    assert (line["event"], line["of"], line["wanted"], line["begins"]) == (
        "shared outcomes were deleted before they were read",
        1,
        4,
        6,
    )


def test_something_else_in_the_topic_is_refused(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    pipeline.produce([Message(pipeline.topics.shared, b"1", b"{}")])
    inboxes = [Inbox(partition, {}) for partition in (0, 1)]
    with (
        open_exchange(pipeline) as exchange,
        pytest.raises(StateError, match=r"shared.*no worker wrote this"),
    ):
        poll(exchange, inboxes, 1)
