"""Outputs in Avro, with a real broker and a real registry: the same records as in JSON, whatever happens."""

from __future__ import annotations

import json
import random
import re
import signal
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka import Producer

from pipeline.errors import RegistryError, StateError
from pipeline.kafka.output_values import OutputValues
from pipeline.records.encoding import encode
from tests.integration.harness import ALIGNED, TIMEOUT, Message, Pipeline, until
from tests.integration.test_stream import BEGIN, command, kill_after, pipeline_of
from tests.integration.test_stream import DEFINITION as DELIVERIES
from tests.support.fake_registry import fake_registry

pytest.importorskip("fastavro", reason="the extra `registry` is not installed")
pytest.importorskip("authlib", reason="as above")

from confluent_kafka.schema_registry import SchemaRegistryClient  # isort: skip # after the check for it
from confluent_kafka.schema_registry.avro import AvroDeserializer  # isort: skip
from confluent_kafka.serialization import MessageField, SerializationContext  # isort: skip

from tests.support.apicurio import Apicurio  # isort: skip

EVENTS = 900
DEFINITION = DELIVERIES.replace("outcomes = 500", "outcomes = 200")  # a snapshot long before the end
JOIN = 'max_idle = "1s"\nearly = "30d"\nwindow = "30d"\n'
OFFSET = re.compile(r"^ *[01]:\d+ ", re.MULTILINE)
"""Partition and offset of a record. Transactions that ended otherwise leave other gaps."""
WAITS = "waits for the schema registry"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Orders, one JSON object a line."""
    path = tmp_path_factory.mktemp("table") / "orders.jsonl"
    chance = random.Random(5)
    with path.open("wb") as file:
        for number in range(EVENTS):
            courier, restaurant = chance.randrange(40), chance.randrange(25)
            at = BEGIN // 1000 + 60 * number
            order = {
                "order": f"o{number}",
                "courier": {"id": f"c{courier}"},
                "from": restaurant,
                "times": {"at": f"{_iso(at)}", "arrived": at + 1200.25},
                "on_time": chance.random() > (courier + restaurant) / 64,
            }
            file.write(encode(order) + b"\n")
    return path


def _iso(seconds: int) -> str:
    minutes = (seconds - BEGIN // 1000) // 60
    return f"2026-03-{1 + minutes // 1440:02}T{minutes // 60 % 24:02}:{minutes % 60:02}:00Z"


def in_avro(url: str, *, inputs: str = "avro") -> str:
    """Return the definition of deliveries with outputs in Avro."""
    text = DEFINITION.replace('topic = "orders"', f'topic = "orders"\nformat = "{inputs}"')
    text = text.replace('topic = "arrivals"', f'topic = "arrivals"\nformat = "{inputs}"')
    text = text.replace("[stream.target]", '[stream.outputs]\nformat = "avro"\n\n[stream.target]')
    return f'{text}{JOIN}\n[registry]\nurl = "{url}"\n'


def json_values(pipeline: Pipeline, topic: str) -> list[bytes]:
    values = OutputValues(pipeline.topics)
    return [values.json(topic, each.value or b"") for each in pipeline.read(topic)]


@pytest.mark.slow
@pytest.mark.xdist_group("registry")
def test_outputs_are_those_of_json_over_kills_and_a_registry_that_is_away(
    registry: Apicurio, table: Path, bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    plain = pipeline_of(bootstrap, f"{topic_prefix}json-", tmp_path / "json", DEFINITION + JOIN)
    avro, sent = (
        pipeline_of(bootstrap, f"{topic_prefix}{name}-", tmp_path / name, in_avro(registry.url))
        for name in ("avro", "sent")
    )
    for pipeline in (plain, sent):
        command(pipeline, "replay", str(table))
    _shows_inputs(plain, sent)
    plain.environment = avro.environment = ALIGNED
    plain.run_until({plain.topics.outcomes: EVENTS})

    topics, parts = avro.topics, _parts(sent, avro)
    avro.produce(parts[0])
    kill_after(avro, (200,))
    worker = avro.start_worker()
    try:
        with avro.follow(topics.outcomes) as follower:
            avro.produce(parts[1])
            labels = sum(each.topic == topics.labels for each in parts[0] + parts[1])
            until(partial(follower.reached, labels), "the outcomes of two parts", worker)
            registry.stop()
            avro.produce(parts[2])
            until(partial(follower.reached, labels + 50), "those that need no registry", worker)
            worker.send_signal(signal.SIGKILL)
            worker.wait(TIMEOUT)
    finally:
        worker.kill()
        worker.wait()
    log = avro.log_of("worker")
    begin = len(log.read_text())
    worker = avro.start_worker()
    try:
        until(lambda: WAITS in log.read_text()[begin:], "a worker that waits", worker)
        registry.start()
        with avro.follow(topics.outcomes) as follower:
            until(partial(follower.reached, EVENTS), "all outcomes", worker)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(TIMEOUT) == 0
    finally:
        worker.kill()
        worker.wait()
    until(avro.settled, "the end of all transactions")

    _are_the_same(plain, avro)
    _read_by_others(registry, avro)
    _refuses_another_format(avro)
    _refuses_hostile_records(avro)


def _are_the_same(plain: Pipeline, avro: Pipeline) -> None:
    """What was written is, byte for byte, what is written in JSON, and all commands read it."""
    for name in ("predictions", "outcomes"):
        topic = getattr(avro.topics, name)
        assert all((each.value or b"")[0] == 0 for each in avro.read(topic))
        found = json_values(avro, topic)
        assert found == [each.value for each in plain.read(getattr(plain.topics, name))]
    assert any(b'"shared":[{' in each for each in found)
    assert avro.read(avro.topics.dead_letters) == []
    assert "no difference" in command(avro, "audit", "--group", avro.kafka.group)
    assert "no difference" in command(avro, "audit", "--group", avro.kafka.group, "--from-snapshot")
    assert "identical" in command(avro, "rebuild", "--group", avro.kafka.group)
    for arguments in (("report", "--json"), ("inspect", "outcomes", "--detail"), ("inspect", "predictions")):
        of_plain, of_avro = (OFFSET.sub("", command(each, *arguments)) for each in (plain, avro))
        assert of_plain == of_avro
    tables = []
    for each in (plain, avro):
        folder = each.folder / "exported"
        command(each, "export", "outcomes", "--to", str(folder))
        tables.append(pl.read_parquet(folder / "day=*" / "**" / "*.parquet").drop("offset"))
    assert len(tables[0]) == EVENTS
    assert tables[0].equals(tables[1])


def _parts(sent: Pipeline, other: Pipeline) -> list[list[Message]]:
    """Return the messages that were sent to a pipeline, for another one, in three parts by their time."""
    topics = dict(zip(sent.topics.inputs, other.topics.inputs, strict=True))
    messages = [
        Message(topics[topic], each.key or b"", each.value, each.timestamp)
        for topic in topics
        for each in sent.read(topic)
    ]
    messages.sort(key=lambda message: message.timestamp)
    bounds = [BEGIN + 60_000 * number for number in (500, 600)]
    ends = [sum(each.timestamp < bound for each in messages) for bound in bounds]
    return [messages[: ends[0]], messages[ends[0] : ends[1]], messages[ends[1] :]]


def _shows_inputs(plain: Pipeline, avro: Pipeline) -> None:
    """Inputs in Avro are shown as those in JSON are."""
    order = json.loads(command(avro, "inspect", "interactions", "--json").splitlines()[0])["value"]
    assert order["courier"]["id"].startswith("c")
    for what in ("interactions", "labels"):
        shown = [command(each, "inspect", what, "--limit", "5") for each in (plain, avro)]
        assert shown[0] == shown[1]
        assert "cannot be decoded" not in shown[0]


def _read_by_others(registry: Apicurio, pipeline: Pipeline) -> None:
    """Confluent's own deserializer reads an outcome, and finds the fields of its JSON."""
    topic = pipeline.topics.outcomes
    value, text = pipeline.read(topic)[-1].value or b"", json_values(pipeline, topic)[-1]
    with SchemaRegistryClient({"url": registry.url, "timeout": TIMEOUT}) as client:
        assert client.get_latest_version(f"{topic}-value").schema_id == int.from_bytes(value[1:5])
        deserializer = AvroDeserializer(client)
        found = deserializer(value, SerializationContext(topic, MessageField.VALUE))
    assert isinstance(found, dict)
    expected = json.loads(text)
    for name in ("event_id", "courier", "restaurant", "score", "features", "on_time", "status"):
        assert found[name] == expected[name]


def _refuses_another_format(pipeline: Pipeline) -> None:
    options = pipeline.options
    other = pipeline.folder / "other.toml"
    other.write_text(Path(options[1]).read_text().replace('[stream.outputs]\nformat = "avro"', ""))
    pipeline.options = ("--config", str(other))
    worker = pipeline.start_worker()
    assert worker.wait(TIMEOUT) == StateError.exit_code
    text = pipeline.log_of("worker").read_text()
    assert "stream.outputs.format is 'json', was 'avro'" in text
    pipeline.options = options


def _refuses_hostile_records(pipeline: Pipeline) -> None:
    """What a worker did not write is refused as in JSON: reports, audits and workers say where it is."""
    topic = pipeline.topics.outcomes
    good = pipeline.read(topic)[0].value or b""
    producer = Producer({"bootstrap.servers": pipeline.kafka.bootstrap})
    producer.produce(topic, good[:-1], partition=0)
    assert producer.flush(TIMEOUT) == 0
    kafka = pipeline.kafka
    command(pipeline, "report", exit_code=1)  # of the runner, for any error
    shown = command(pipeline, "inspect", "outcomes", "--partition", "0", "--limit", "1")
    assert "cannot be decoded" in shown
    assert "1  differences" in command(pipeline, "audit", "--group", kafka.group, exit_code=1)
    worker = pipeline.start_worker()
    assert worker.wait(TIMEOUT) == StateError.exit_code
    assert "no worker wrote this record: the value is cut off" in pipeline.log_of("worker").read_text()


@pytest.mark.slow
def test_a_registry_that_refuses_a_schema_ends_the_worker_and_one_that_is_away_does_not(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    with fake_registry() as registry:
        pipeline = pipeline_of(
            bootstrap, topic_prefix, tmp_path / "refused", in_avro(registry.url, inputs="json")
        )
        log = pipeline.log_of("worker")
        registry.refusal = (409, "Schema being registered is incompatible")
        worker = pipeline.start_worker()
        assert worker.wait(TIMEOUT) == RegistryError.exit_code
        text = log.read_text()
        assert f"refuses the schema of {pipeline.topics.predictions}-value: HTTP 409" in text
        assert registry.url in text
        assert "set the subject's compatibility to NONE" in text
        assert "Traceback" not in text
        registry.status = 503
        worker = pipeline.start_worker()
        try:
            until(lambda: WAITS in log.read_text(), "a worker that waits", worker)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(TIMEOUT) == 0
        finally:
            worker.kill()
            worker.wait()
        assert pipeline.read(pipeline.topics.checkpoints) == []
