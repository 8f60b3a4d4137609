"""Messages that just fit into their input, and do not fit into dead-letters with its headers."""

from __future__ import annotations

import json
import os
import time
from base64 import b64encode
from pathlib import Path
from typing import TypeAlias

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.settings import Kafka
from pipeline.config.stream import KUAIREC
from pipeline.config.topics import Topics
from pipeline.errors import TopicError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.new_client import LIBRDKAFKA_LOGGER
from pipeline.kafka.clients import groupless_consumer
from pipeline.kafka.topics import output_limits
from pipeline.records.dead_letter import DeadLetterHeaders, read_dead_letter
from pipeline.records.encoding import encode
from pipeline.records.inputs import RawMessage
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.records.largest import LargestRecords
from pipeline.records.names import LENGTH_HEADER, SHA256_HEADER, Fault
from tests.integration.harness import TIMEOUT, Message, Pipeline, until
from tests.pipeline.records.test_dead_letter import batch_size

Sent: TypeAlias = tuple[Message, list[tuple[str, bytes]]]
"""A message with its headers."""
LIMIT = 1_048_588
"""What brokers take by default."""


def limited(bootstrap: str, prefix: str, folder: Path, **limits: int) -> Pipeline:
    """A pipeline whose dead letters may be as large as the messages of its inputs, and no larger."""
    topics = Topics(prefix)
    new = [
        NewTopic(name, 1, 1, config=topics.settings(name) | {"max.message.bytes": str(limit)})
        for name, limit in {
            topics.dead_letters: LIMIT,
            **{getattr(topics, name): limit for name, limit in limits.items()},
        }.items()
    ]
    client = Admin(Kafka(bootstrap=bootstrap))
    for created in client.create_topics(new).values():
        created.result(TIMEOUT)
    return Pipeline(bootstrap, prefix, folder, max_message_bytes=str(LIMIT))


def set_limit(pipeline: Pipeline, topic: str, limit: int) -> None:
    """Change `max.message.bytes` of a topic."""
    entry = ConfigEntry("max.message.bytes", str(limit), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = Admin(pipeline.kafka)
    for altered in client.incremental_alter_configs([resource]).values():
        altered.result(TIMEOUT)


def room(size: int, key: bytes = b"7") -> int:
    """Bytes of a value whose message is a batch of that size, by itself: the deltas of its record are 0."""
    value = b"x" * (size - 200)
    return len(value) + size - (batch_size(key, value, []) - 9 - 4)


def noise(size: int) -> bytes:
    """A value that does not compress, for a batch of that size."""
    return b"\xff" + os.urandom(room(size) - 1)


def padded(record: object, size: int) -> bytes:
    """The JSON of a record with a field that nobody reads, for a batch of that size."""
    text, field = encode(record)[:-1], b',"noise":"'
    length = room(size) - len(text) - len(field) - 2
    return text + field + b64encode(os.urandom(length))[:length] + b'"}'


def send(pipeline: Pipeline, messages: list[Sent]) -> None:
    producer = Producer(
        {"bootstrap.servers": pipeline.kafka.bootstrap, "message.max.bytes": 2 * LIMIT, "linger.ms": 0},
        logger=LIBRDKAFKA_LOGGER,
    )
    failures: list[KafkaError] = []
    for (topic, key, value, timestamp), headers in messages:
        producer.produce(
            topic,
            value,
            key,
            0,
            on_delivery=lambda error, _: failures.append(error) if error else None,
            timestamp=timestamp,
            headers=list(headers),
        )
        assert producer.flush(TIMEOUT) == 0  # each by itself
    if failures:
        raise KafkaException(failures[0])


def options(pipeline: Pipeline) -> list[str]:
    kafka = pipeline.kafka
    return ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group]


def command(pipeline: Pipeline, *arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, *options(pipeline)])
    assert result.exit_code == 0, result.output
    return result.stdout


def read(pipeline: Pipeline, topic: str) -> list[tuple[RawMessage, DeadLetterHeaders]]:
    """The messages of a topic, and what their headers say as those of dead letters."""
    found = list[tuple[RawMessage, DeadLetterHeaders]]()
    consumer = groupless_consumer(pipeline.kafka)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            for message in consumer.consume(100, 0.2):
                if message.error() is not None:
                    return found
                found.append((RawMessage.of(message), read_dead_letter(message)))
    finally:
        consumer.close()


def test_every_size_up_to_the_limit_is_a_dead_letter_and_the_next_message_is_predicted(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = limited(bootstrap, topic_prefix, tmp_path)
    topics, now = pipeline.topics, round(time.time() * 1000)
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        send(pipeline, [(Message(topics.interactions, b"7", noise(LIMIT + 1)), [])])
    sizes = [*range(LIMIT - 2_048, LIMIT, 100), *range(LIMIT - 8, LIMIT + 1)]
    bad: list[Sent] = [(Message(topics.interactions, b"7", noise(size)), []) for size in sizes]
    large: list[tuple[str, bytes]] = [("large", os.urandom(LIMIT - 200)), ("trace", b"1")]
    bad += [
        (Message(topics.interactions, os.urandom(LIMIT // 2), noise(LIMIT // 2 - 100)), []),
        (Message(topics.interactions, os.urandom(LIMIT - 200), b"{"), []),
        (Message(topics.interactions, b"\0" * (LIMIT - 400), encode(event("wrong key", now))), []),
        (Message(topics.interactions, b"7", b"{"), large),
    ]
    orphan = WatchLabel("nobody saw it", 7, 3, now, 100.0, 0.1)
    other = WatchLabel("e", 7, 4, now + 2, 100.0, 0.1)
    labels: list[Sent] = [
        (Message(topics.labels, b"7", padded(each, LIMIT)), []) for each in (orphan, orphan, other)
    ]
    send(pipeline, [*bad, *labels[:2]])
    with pipeline.worker() as worker, pipeline.follow(topics.predictions) as predictions:
        with pipeline.follow(topics.dead_letters) as dead_letters:
            until(lambda: dead_letters.reached(len(bad) + 2), "dead letters", worker)
        begin = time.monotonic()
        send(pipeline, [(Message(topics.interactions, b"7", encode(event("e", now + 1)), now + 1), [])])
        until(lambda: predictions.reached(1), "the prediction", worker)
        seconds = time.monotonic() - begin
        send(pipeline, labels[2:])
        with pipeline.follow(topics.dead_letters) as dead_letters:
            until(lambda: dead_letters.reached(len(bad) + 3), "dead letters", worker)
    assert "starting over" not in pipeline.log_of("worker").read_text()

    sources = {(each.topic, each.offset): each for t in topics.inputs for each, _ in read(pipeline, t)}
    found = read(pipeline, topics.dead_letters)
    assert len(found) == len(bad) + 3
    cut = 0
    for letter, headers in found:
        source = sources[headers.topic or "", headers.offset or 0]
        if headers.original is None:
            assert (letter.key, letter.value) == (source.key, source.value)
            continue
        cut += 1
        assert headers.original.length == len(source.value or b"")
        assert (source.value or b"").startswith(letter.value or b"")
        assert (source.key or b"").startswith(letter.key or b"")
    assert 10 < cut < len(found) - 10  # of the smaller sizes none is
    print(f"predicted after {seconds:.3f} s")
    assert {headers.fault for _, headers in found} == {
        Fault.UNDECODABLE,
        Fault.WRONG_KEY,
        Fault.ORPHAN,
        Fault.MISMATCHED,
    }
    assert "no difference" in command(pipeline, "audit")
    shown = CliRunner().invoke(app, ["inspect", "dead-letters", "--json", *options(pipeline)[:4]])
    assert shown.stdout.count('"cut_from"') == cut


def event(name: str, at: int) -> KuaiRecInteraction:
    return KuaiRecInteraction(name, 7, 3, at, 9_000.0)


def test_a_cut_dead_letter_is_redriven_from_its_original_while_that_is_there(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = limited(bootstrap, topic_prefix, tmp_path)
    topics, ahead = pipeline.topics, round(time.time() * 1000) + 20 * 60_000
    pipeline.environment = {"FORKS_JOIN__MAX_AHEAD": "1m"}
    headers = [("trace", b"1"), (LENGTH_HEADER, b"3"), (SHA256_HEADER, b"0" * 64)]
    sizes = {"small": 2_000, "gone": LIMIT - 300, "cut": LIMIT - 300, "full": LIMIT - 20}
    send(
        pipeline,
        [
            (Message(topics.interactions, b"7", padded(event(name, ahead), size), ahead), headers[:1])
            for name, size in sizes.items()
            if name != "small"
        ]
        + [(Message(topics.interactions, b"7", padded(event("small", ahead), 2_000), ahead), headers)],
    )
    pipeline.run_until({topics.dead_letters: 4})
    originals = {event_of(each): each for each, _ in read(pipeline, topics.interactions)}
    letters = read(pipeline, topics.dead_letters)
    assert [headers.original is None for _, headers in letters] == [False, False, False, True]

    admin = Admin(pipeline.kafka)
    for deleted in admin.delete_records([TopicPartition(topics.interactions, 0, 1)]).values():
        deleted.result(TIMEOUT)
    planned = json.loads(command(pipeline, "redrive", "--json", "--dry-run"))
    assert (planned["redriven"], planned["lost"]) == (3, 1)
    refused = CliRunner().invoke(app, ["redrive", *options(pipeline)])
    assert isinstance(refused.exception, TopicError)
    largest = f"{topics.dead_letters}/0/{letters[2][0].offset}"
    assert f"the message of dead letter {largest} as too large" in str(refused.exception)
    set_limit(pipeline, topics.interactions, LIMIT + 1_000)
    until(lambda: try_redrive(pipeline), "the larger limit")

    pipeline.environment = {"FORKS_JOIN__MAX_AHEAD": "1h"}
    pipeline.run_until({topics.predictions: 3})
    assert {each["event_id"] for each in pipeline.read_json(topics.predictions)} == {"cut", "full", "small"}
    again = [each for each, _ in read(pipeline, topics.interactions)][3:]
    for message in again:
        original = originals[event_of(message)]
        assert (message.key, message.value) == (original.key, original.value)
        assert [*message.headers][:-1] == original.headers
    assert "no difference" in command(pipeline, "audit")


def try_redrive(pipeline: Pipeline) -> bool:
    """Whether the broker takes the messages by now."""
    result = CliRunner().invoke(app, ["redrive", "--json", *options(pipeline)])
    if isinstance(result.exception, TopicError):
        return False
    summary = json.loads(result.stdout)
    assert (summary["redriven"], summary["lost"], summary["without_original"]) == (3, 1, 0)
    return True


def event_of(message: RawMessage) -> str:
    name: str = json.loads(message.value or b"")["event_id"]
    return name


def test_limits_that_are_lowered_meanwhile_are_kept_or_named(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    """A worker that has started with large dead letters cuts them, and ends where there is nothing to cut."""
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, max_message_bytes=str(LIMIT))
    topics, now = pipeline.topics, round(time.time() * 1000)
    log = pipeline.log_of("worker")
    with pipeline.worker() as worker, pipeline.follow(topics.dead_letters) as dead_letters:
        send(pipeline, [(Message(topics.interactions, b"7", noise(LIMIT)), [])])
        until(lambda: dead_letters.reached(1), "a dead letter", worker)
        set_limit(pipeline, topics.dead_letters, LIMIT)
        client = Admin(pipeline.kafka)
        until(lambda: output_limits(client, topics).dead_letter == LIMIT, "the limit")
        send(pipeline, [(Message(topics.interactions, b"7", noise(LIMIT)), [])])
        until(lambda: dead_letters.reached(2), "a cut dead letter", worker)
    assert [headers.original is None for _, headers in read(pipeline, topics.dead_letters)] == [True, False]
    assert log.read_text().count("starting over") == 1

    process = pipeline.start_worker()
    try:
        set_limit(pipeline, topics.predictions, 100)
        until(lambda: output_limits(client, topics).batch < 100, "the limit")
        send(pipeline, [(Message(topics.interactions, b"7", encode(event("e", now)), now), [])])
        assert process.wait(TIMEOUT) == 4
    finally:
        process.kill()
        process.wait()
    assert f"{topics.predictions}: max.message.bytes is 100" in log.read_text()


def test_the_largest_events_fit_or_the_worker_refuses_to_start(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    """Ids have 256 characters, each of which is six in JSON."""
    largest = LargestRecords.of(KUAIREC, [], 0)
    pipeline = limited(
        bootstrap, topic_prefix, tmp_path, predictions=largest.prediction, outcomes=largest.outcome
    )
    topics, now = pipeline.topics, round(time.time() * 1000)
    user = 256 * "\x01"
    events = [f"{number:\x01>256}" for number in range(50)]
    interactions = [KuaiRecInteraction(name, user, user, now, 9_000.0) for name in events]
    labels = [WatchLabel(name, user, user, now + 1, 9_000.0, 1.0) for name in events]
    key = user.encode()
    pipeline.produce(Message(topics.interactions, key, encode(each), now) for each in interactions)
    pipeline.produce(Message(topics.labels, key, encode(each), now + 1) for each in labels)
    pipeline.run_until({topics.outcomes: len(events)})
    assert pipeline.read(topics.dead_letters) == []
    assert max(len(each.value or b"") for each in pipeline.read(topics.predictions)) > 3 * 6 * 250

    set_limit(pipeline, topics.predictions, largest.prediction - 1)
    process = pipeline.start_worker()
    try:
        assert process.wait(TIMEOUT) == 4
    finally:
        process.kill()
        process.wait()
    assert f"a record may have {largest.prediction}" in pipeline.log_of("worker").read_text()
