"""Inputs in the formats of a schema registry, with a real broker and a real registry."""

from __future__ import annotations

import json
import random
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from pipeline.errors import RegistryError
from pipeline.kafka.partitioner import partition
from pipeline.records.encoding import encode
from pipeline.records.names import EXCEPTION_HEADER, MESSAGE_HEADER
from tests.integration.harness import TIMEOUT, Message, Pipeline, until
from tests.integration.test_stream import BEGIN, DEFINITION, command, kill_after, pipeline_of
from tests.support.fake_registry import FakeRegistry, fake_registry
from tests.support.forked import run_command
from tests.support.schemas import ORDER, avro, changed, framed, order_class, order_file, proto_schema, without

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient  # isort: skip # after the check for it
from confluent_kafka.schema_registry.avro import AvroSerializer  # isort: skip
from confluent_kafka.serialization import MessageField, SerializationContext  # isort: skip

from tests.support.apicurio import Apicurio  # isort: skip

EVENTS = 1_500
FIRST = 500
"""Events of the first schema; the others are of one with another field."""
ARRIVAL: dict[str, Any] = {
    "type": "record",
    "name": "Arrival",
    "namespace": "food",
    "fields": [
        *without("times")["fields"][:-1],
        {
            "name": "times",
            "type": {
                "type": "record",
                "name": "Known",
                "fields": [{"name": "arrived", "type": {"type": "long", "logicalType": "timestamp-micros"}}],
            },
        },
        {"name": "on_time", "type": "boolean"},
    ],
}
TIPPED = {**ORDER, "fields": [*ORDER["fields"], {"name": "tip", "type": "double", "default": 0.0}]}
WAITS = "wait for the schema registry"
BACK = "the schema registry answers again"


def definition(url: str, interactions: str, labels: str) -> str:
    text = DEFINITION.replace('topic = "orders"', f'topic = "orders"\nformat = "{interactions}"')
    text = text.replace('topic = "arrivals"', f'topic = "arrivals"\nformat = "{labels}"')
    # Events come much faster than they happened, so labels may overtake their interactions by hours.
    join = 'max_idle = "3s"\nearly = "30d"\nwindow = "30d"\n'
    return f'{text}{join}\n[registry]\nurl = "{url}"\n'


def events(first: int, end: int) -> Iterator[tuple[bytes, dict[str, Any], dict[str, Any], int]]:
    """Yield key, order, arrival and time in milliseconds."""
    for number in range(first, end):
        chance = random.Random(number)
        courier, restaurant = f"c{chance.randrange(40)}", chance.randrange(25)
        at, slow = BEGIN + 60_000 * number, (int(courier[1:]) + restaurant) / 64
        ids = {"order": f"o{number}", "courier": {"nick": None, "id": courier}, "from": restaurant}
        order = ids | {"times": {"at": at}, "note": None}
        arrival = ids | {"times": {"arrived": 1_000 * (at + 1_200_000)}, "on_time": chance.random() > slow}
        yield courier.encode(), order, arrival, at


class Serializers:
    """Confluent's own serializers, which register what they write."""

    def __init__(self, registry: Apicurio | FakeRegistry, pipeline: Pipeline) -> None:
        # Without a timeout the client would wait for ever for an answer that was lost.
        self._settings = {"url": registry.url, "timeout": TIMEOUT}
        self._topics = pipeline.topics

    def register(self, subject: str, schema: dict[str, Any]) -> int:
        with SchemaRegistryClient(self._settings) as client:
            return int(client.register_schema(subject, Schema(json.dumps(schema), "AVRO")))

    def messages(self, schema: dict[str, Any], first: int, end: int) -> list[Message]:
        with SchemaRegistryClient(self._settings) as client:
            return self._messages(client, schema, first, end)

    def _messages(
        self, client: SchemaRegistryClient, schema: dict[str, Any], first: int, end: int
    ) -> list[Message]:
        found, inputs = list[Message](), self._topics.inputs
        orders, arrivals = (
            AvroSerializer(client, json.dumps(each), lambda value, _: value) for each in (schema, ARRIVAL)
        )
        contexts = [SerializationContext(topic, MessageField.VALUE) for topic in inputs]
        for key, order, arrival, at in events(first, end):
            found.append(Message(inputs[0], key, orders(order | {"tip": 1.5}, contexts[0]), at))
            found.append(Message(inputs[1], key, arrivals(arrival, contexts[1]), at + 1_200_000))
        return found


def wait_for_log(pipeline: Pipeline, text: str, begin: int) -> None:
    log = pipeline.log_of("worker")
    until(lambda: text in log.read_text()[begin:], f"the line: {text}")


@pytest.mark.slow
@pytest.mark.xdist_group("registry")
def test_avro_is_learned_over_kills_evolution_and_a_registry_that_is_away(
    registry: Apicurio, bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = pipeline_of(
        bootstrap, topic_prefix, tmp_path / "avro", definition(registry.url, "avro", "avro")
    )
    serializers, topics = Serializers(registry, pipeline), pipeline.topics
    pipeline.produce(serializers.messages(ORDER, 0, FIRST))
    assert "deliveries: everything fits" in command(pipeline, "stream", "check", "--messages", "10000")
    kill_after(pipeline, (200,))

    later = serializers.messages(TIPPED, FIRST, EVENTS)
    bad = changed("from", "bytes") | {"name": "Bad"}
    unfit = serializers.register("unfit", bad)
    good = later[0].value or b""
    hostile = [
        (good[:-1], b"undecodable", b"the value is cut off"),
        (b"\1" + good[1:], b"undecodable", b"magic byte"),
        (framed(12_345, good[5:]), b"undecodable", b"schema 12345 is not in the registry"),
        (avro(bad, next(events(0, 1))[1] | {"from": b"x"}, unfit), b"invalid", b"got `bytes` - at `$.from`"),
        (encode({"order": "o1"}), b"undecodable", b"magic byte"),
    ]
    registry.stop()
    pipeline.produce([*later[:400], *(Message(topics.interactions, b"c1", each[0]) for each in hostile)])
    log = pipeline.log_of("worker")
    begin = len(log.read_text())
    worker = pipeline.start_worker()
    try:
        wait_for_log(pipeline, WAITS, begin)
        before = len(pipeline.read(topics.outcomes))
        pipeline.produce(later[400:])
        worker.send_signal(signal.SIGTERM)  # it also stops while it waits
        assert worker.wait(TIMEOUT) == 0
        assert len(pipeline.read(topics.outcomes)) == before < EVENTS
        assert pipeline.read(topics.dead_letters) == []
        assert log.read_text()[begin:].count(WAITS) == 1
        worker = pipeline.start_worker()
        wait_for_log(pipeline, WAITS, len(log.read_text()))
        begin = len(log.read_text())
        registry.start()
        wait_for_log(pipeline, BACK, begin)
    finally:
        worker.kill()
        worker.wait()
    kill_after(pipeline, (900,))
    pipeline.run_until({topics.outcomes: EVENTS})
    _check_outcomes(pipeline)
    dead = {each.value: dict(each.headers) for each in pipeline.read(topics.dead_letters)}
    assert len(dead) == len(hostile)
    for value, fault, reason in hostile:
        assert dead[value][EXCEPTION_HEADER] == fault
        assert reason in dead[value][MESSAGE_HEADER]
    assert "no difference" in command(pipeline, "audit", "--group", pipeline.kafka.group)
    assert "identical" in command(pipeline, "rebuild", "--group", pipeline.kafka.group)
    checked = command(pipeline, "stream", "check", "--messages", "10000", "--json", exit_code=1)
    found = json.loads(checked)["interactions"]
    assert (found["usable"], found["messages"]) == (EVENTS, EVENTS + len(hostile))
    assert [field["kinds"] for field in found["fields"] if field["name"] == "time"] == [
        {"whole number": EVENTS}
    ]


def _check_outcomes(pipeline: Pipeline) -> None:
    """Check that each event has one outcome, of the values that were sent."""
    expected = {
        order["order"]: (at, arrival["times"]["arrived"] // 1_000, float(arrival["on_time"]))
        for _, order, arrival, at in events(0, EVENTS)
    }
    outcomes = pipeline.read_json(pipeline.topics.outcomes)
    assert len(outcomes) == EVENTS
    assert {
        each["event_id"]: (each["timestamp"], each["label_timestamp"], each["on_time"]) for each in outcomes
    } == expected


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    with fake_registry() as found:
        yield found


@pytest.mark.slow
def test_a_label_that_waits_is_restored_once_the_registry_is_back(
    fake: FakeRegistry, bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = pipeline_of(bootstrap, topic_prefix, tmp_path / "early", definition(fake.url, "avro", "avro"))
    interaction, label = Serializers(fake, pipeline).messages(ORDER, 0, 1)

    def waits() -> bool:
        written = pipeline.read(pipeline.topics.checkpoints)
        states = [json.loads(each.value or b"") for each in written if (each.key or b"").endswith(b"/state")]
        return any(state["waiting"] for state in states)

    pipeline.produce([label])
    with pipeline.worker() as worker:
        until(waits, "a label that waits", worker)
    fake.status = 503
    begin = len(pipeline.log_of("worker").read_text())
    worker = pipeline.start_worker()
    try:
        wait_for_log(pipeline, WAITS, begin)
        fake.status = None
        pipeline.produce([interaction])
        with pipeline.follow(pipeline.topics.outcomes) as follower:
            until(partial(follower.reached, 1), "the outcome", worker)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(TIMEOUT) == 0
    finally:
        worker.kill()
        worker.wait()
    fake.status = 503
    kafka = pipeline.kafka
    where = ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group]
    audit = run_command("audit", *pipeline.options, *where)
    fake.status = None
    assert audit.returncode == RegistryError.exit_code
    assert "does not answer: HTTP 503" in audit.stderr
    assert "Traceback" not in audit.stderr
    [outcome] = pipeline.read_json(pipeline.topics.outcomes)
    assert outcome["event_id"] == "o0"
    assert pipeline.read(pipeline.topics.dead_letters) == []
    assert "no difference" in command(pipeline, "audit", "--group", pipeline.kafka.group)


@pytest.mark.slow
def test_protobuf_and_json_schema_are_learned(
    fake: FakeRegistry, bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = pipeline_of(
        bootstrap, topic_prefix, tmp_path / "proto", definition(fake.url, "protobuf", "json-schema")
    )
    file = order_file()
    protobuf = fake.add('syntax = "proto3";', "PROTOBUF", serialized=proto_schema(file).text)
    label = fake.add({"type": "object"}, "JSON")
    order_type = order_class(file)
    interactions, labels = pipeline.topics.inputs
    messages = []
    for key, order, arrival, at in events(0, 300):
        message = order_type(order=order["order"])
        message.courier.id = order["courier"]["id"]
        setattr(message, "from", order["from"])
        message.times.at.FromMilliseconds(at)
        messages.append(
            Message(interactions, key, framed(protobuf, b"\2\2" + message.SerializeToString()), at)
        )
        arrival["times"]["arrived"] /= 1e6
        messages.append(Message(labels, key, framed(label, encode(arrival)), at + 1_200_000))
    pipeline.produce(messages)
    pipeline.produce([Message(interactions, b"c1", framed(label, b"x")), Message(labels, b"c1", b"{}")])
    for unknown in (encode(arrival), b"{}"):  # whatever they are, their schema is not known
        pipeline.produce([Message(labels, key, framed(3, unknown))])
    fake.status = 503
    worker = pipeline.start_worker()
    try:
        wait_for_log(pipeline, WAITS, 0)
        fake.status = None
    finally:
        worker.kill()
        worker.wait()
    pipeline.run_until({pipeline.topics.outcomes: 300})
    dead = [dict(each.headers)[MESSAGE_HEADER] for each in pipeline.read(pipeline.topics.dead_letters)]
    assert sorted(dead) == [
        b"schema 2: it is of JSON, and the input's format is protobuf",
        *[b"schema 3 is not in the registry"] * 2,
        b"the value begins with b'{}', not with the magic byte 0 and the four bytes of a schema's id",
    ]
    assert fake.add({"type": "object"}, "JSON") == 3  # too late for the message, and no fault of the worker
    assert "no difference" in command(pipeline, "audit", "--group", pipeline.kafka.group)
    requests = [path for path in fake.requests if "format=serialized" not in path]
    assert len(requests) < 40


def _scraped(address: str) -> dict[str, float]:
    with urlopen(f"http://{address}/metrics", timeout=10.0) as response:
        found = re.findall(r"^(forks_\S+) (\S+)$", response.read().decode(), re.MULTILINE)
    return {name: float(value) for name, value in found}


@pytest.mark.slow
def test_one_partition_waits_for_the_registry_and_the_other_goes_on(
    fake: FakeRegistry, bootstrap: str, topic_prefix: str, tmp_path: Path, free_port: int
) -> None:
    pipeline = pipeline_of(bootstrap, topic_prefix, tmp_path / "two", definition(fake.url, "avro", "avro"))
    address = f"127.0.0.1:{free_port}"
    pipeline.environment = {"FORKS_METRICS__ADDRESS": address}
    interactions, labels = pipeline.topics.inputs
    order_id, label_id, tipped_id = (fake.add(schema) for schema in (ORDER, ARRIVAL, TIPPED))
    partitions = {f"c{n}".encode(): partition(f"c{n}".encode(), 2) for n in range(40)}

    def messages(first: int, end: int) -> Iterator[tuple[int, list[Message]]]:
        """Yield the messages of each event, with their partition; those of 0 have a new schema at last."""
        for key, order, arrival, at in events(first, end):
            new = partitions[key] == 0 and first > 0
            value = avro(TIPPED if new else ORDER, order | {"tip": 1.0}, tipped_id if new else order_id)
            yield (
                partitions[key],
                [
                    Message(interactions, key, value, at),
                    Message(labels, key, avro(ARRIVAL, arrival, label_id), at + 1_200_000),
                ],
            )

    pipeline.produce(message for _, both in messages(0, 200) for message in both)
    later = list(messages(200, 400))
    others = sum(number == 1 for number, _ in later)
    assert 50 < others < 150
    with pipeline.worker() as worker, pipeline.follow(pipeline.topics.outcomes) as follower:
        until(partial(follower.reached, 200), "the outcomes of known schemas", worker)
        fake.status = 503
        pipeline.produce(message for _, both in later for message in both)
        wait_for_log(pipeline, WAITS, 0)
        until(partial(follower.reached, 200 + others), "the outcomes of the other partition", worker)
        held = 'forks_input_held_messages{input="interactions",partition="%d"}'
        until(lambda: _scraped(address)["forks_registry_away"] == 1.0, "the gauge", worker)
        figures = _scraped(address)
        assert figures[held % 0] > 0
        assert figures[held % 1] == 0
        assert follower.count == 200 + others
        assert pipeline.read(pipeline.topics.dead_letters) == []
        fake.status = None
        until(partial(follower.reached, 400), "all outcomes", worker)
        asked = len(fake.requests)
        pipeline.produce(Message(interactions, b"c1", framed(1_000 + n, b"x")) for n in range(30))
        until(lambda: len(pipeline.read(pipeline.topics.dead_letters)) == 30, "the dead letters", worker)
        assert len(fake.requests) == asked + 30
        until(lambda: _scraped(address)['forks_registry_lookups_total{answer="unknown"}'] == 30, "it", worker)
        assert _scraped(address)["forks_registry_away"] == 0.0
    assert "no difference" in command(pipeline, "audit", "--group", pipeline.kafka.group)
