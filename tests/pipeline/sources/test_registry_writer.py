"""Messages of a table in the formats of a registry: which schema they have, and that the inputs read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.stream import KUAIREC, Stream
from pipeline.errors import ConfigError, DataError, RegistryError
from pipeline.kafka import registry as registry_module
from pipeline.kafka.registry import SchemaRegistry
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Slate
from pipeline.records.schemas import WriterSchema
from pipeline.sources.messages import StreamWriter
from pipeline.sources.rows import read_rows
from tests.pipeline.records.test_input_decoders import DELIVERIES
from tests.pipeline.sources import test_slates as slate_rows
from tests.support.fake_registry import FakeRegistry, fake_registry

for package in ("authlib", "fastavro"):
    pytest.importorskip(package, reason="the extra `registry` is not installed")

from pipeline.sources.registry_writer import RegistryWriter  # noqa: E402 - needs the extra

TOPICS = "orders", "arrivals"
FEATURES = {
    "km": {"kind": "number", "field": "/km"},
    "cuisine": {"kind": "category", "field": "/cuisine", "columns": 4, "missing": "none"},
    "hot": {"kind": "boolean", "field": "/more/hot", "missing": False},
    "where": {"kind": "vector", "field": "/where", "length": 2},
}
ROWS = [
    {
        "order": f"o{number}",
        "courier": {"id": f"c{number}"},
        "from": number,
        "times": {"at": f"2026-03-01T12:0{number}:00.250Z", "arrived": 1_772_366_400.25 + 60 * number + 9},
        "on_time": number % 2 == 0,
        "km": 0.1 * number,
        "cuisine": "sushi" if number else None,
        "more": {"hot": True},
        "where": [0.1, 2.0],
    }
    for number in range(4)
]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRegistry]:
    monkeypatch.setattr(registry_module, "PAUSE", 0.0)
    with fake_registry() as found:
        yield found


def stream_of(interactions: str, labels: str, unit: str = "iso8601") -> Stream:
    definition = DELIVERIES | {"features": FEATURES}
    own = DELIVERIES["interactions"] | {"format": interactions, "time_unit": unit}
    return Stream.model_validate(
        definition | {"interactions": own, "labels": DELIVERIES["labels"] | {"format": labels}}
    )


def rows(stream: Stream, folder: Path) -> list[tuple[Any, ...]]:
    path = folder / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    table = stream.model_copy(
        update={"interactions": stream.interactions.model_copy(update={"time_unit": "iso8601"})}
    )
    events = read_rows(path, table, label_delay=10)
    assert events.skipped == {}
    return events.frame.select(StreamWriter(stream.in_json).columns).rows()


@pytest.mark.parametrize("labels", ["json", "avro", "json-schema"])
@pytest.mark.parametrize("interactions", ["json", "avro", "json-schema"])
@pytest.mark.parametrize("unit", ["ms", "us", "s", "iso8601"])
def test_the_inputs_read_what_is_sent(
    server: FakeRegistry, tmp_path: Path, interactions: str, labels: str, unit: str
) -> None:
    if (interactions, labels) == ("json", "json"):
        return
    stream = stream_of(interactions, labels, unit)
    registry = SchemaRegistry(server.settings())
    writer, plain = RegistryWriter(stream, TOPICS, registry), StreamWriter(stream.in_json)
    decoders, of_json = InputDecoders.of(stream, registry), InputDecoders.of(stream.in_json)
    for row in rows(stream, tmp_path):
        found = decoders.interactions.decode(writer.interaction(row))
        expected = of_json.interactions.decode(plain.interaction(row))
        assert all(getattr(found, name) == getattr(expected, name) for name in found.__struct_fields__)
        label = decoders.labels.decode(writer.label(row))
        assert label.timestamp == of_json.labels.decode(plain.label(row)).timestamp
    registered = [name for name, kind in zip(TOPICS, (interactions, labels), strict=True) if kind != "json"]
    assert all(server.latest(f"{name}-value") for name in registered)
    assert not any(server.latest(f"{name}-value") for name in {*TOPICS} - {*registered})


@pytest.mark.parametrize("format_", ["avro", "json-schema"])
def test_the_slates_of_a_table_are_sent_with_a_schema(
    server: FakeRegistry, tmp_path: Path, format_: str
) -> None:
    interactions = slate_rows.DEFINITION["interactions"] | {"format": format_}
    stream = Stream.model_validate(slate_rows.DEFINITION | {"interactions": interactions})
    given = [slate_rows.row("a", 1_000, 7), slate_rows.row("a", 1_000, 8, price=None, vector=None)]
    events = slate_rows.read(tmp_path, given, stream)
    registry = SchemaRegistry(server.settings())
    writer, plain = RegistryWriter(stream, TOPICS, registry), StreamWriter(stream.in_json)
    first = events.frame.select(writer.columns).row(0)
    found = InputDecoders.of(stream, registry).interactions.decode(writer.interaction(first))
    expected = InputDecoders.of(stream.in_json).interactions.decode(plain.interaction(first))
    assert isinstance(found, Slate)
    assert isinstance(expected, Slate)
    assert [each.ids for each in found.items] == [("ua", 7), ("ua", 8)]
    for one, other in zip(found.items, expected.items, strict=True):
        assert all(getattr(one, name) == getattr(other, name) for name in one.__struct_fields__)


def test_kuairec_s_rows_are_sent_too(server: FakeRegistry) -> None:
    avro = {"format": "avro"}
    parts = ("interactions", "labels")
    stream = KUAIREC.model_copy(
        update={name: getattr(KUAIREC, name).model_copy(update=avro) for name in parts}
    )
    registry = SchemaRegistry(server.settings())
    writer, decoders = RegistryWriter(stream, TOPICS, registry), InputDecoders.of(stream, registry)
    values = {"event_id": "e", "user_id": 7, "video_id": 3, "timestamp": 5, "label_timestamp": 9}
    values |= {"play_duration": 450.0, "video_duration": 900.0, "watch_ratio": 0.5}
    row = [values[name] for name in writer.columns]
    assert values[writer.key_column] == 7
    interaction, label = decoders.interactions.decode(writer.interaction(row)), writer.label(row)
    assert (interaction.event_id, interaction.ids, interaction.timestamp) == ("e", (7, 3), 5)
    assert decoders.labels.decode(label).watch_ratio == 0.5


def _order(**changes: Any) -> dict[str, Any]:
    fields = {
        "order": "string",
        "courier": {"type": "record", "name": "C", "fields": [{"name": "id", "type": "string"}]},
        "from": "int",
        "times": {
            "type": "record",
            "name": "T",
            "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}}],
        },
        "km": "double",
        "where": {"type": "array", "items": "double"},
    }
    fields = {name: kind for name, kind in (fields | changes).items() if kind is not None}
    return {
        "type": "record",
        "name": "Order",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


def test_the_latest_schema_is_taken_where_there_is_one(server: FakeRegistry, tmp_path: Path) -> None:
    stream, registry = stream_of("avro", "json"), SchemaRegistry(server.settings())
    registry.register("orders-value", WriterSchema("AVRO", '"string"'))
    number = registry.register("orders-value", WriterSchema("AVRO", json.dumps(_order())))
    writer, decoders = RegistryWriter(stream, TOPICS, registry), InputDecoders.of(stream, registry)
    for row in rows(stream, tmp_path):
        value = writer.interaction(row)
        assert value[:5] == b"\0" + number.to_bytes(4)
        assert decoders.interactions.decode(value).timestamp % 1000 == 250
    assert server.latest("orders-value") == number


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (WriterSchema("AVRO", json.dumps(_order(km=None))), "missing required field `km`"),
        (WriterSchema("AVRO", json.dumps(_order(km="bytes"))), "got `bytes` - at `\\$.km`"),
        (WriterSchema("JSON", '{"type": "object"}'), "is of JSON, and the input's format is avro"),
    ],
)
def test_a_schema_that_does_not_fit_is_named(server: FakeRegistry, schema: WriterSchema, reason: str) -> None:
    registry = SchemaRegistry(server.settings())
    registry.register("orders-value", schema)
    with pytest.raises(ConfigError, match=f"schema 1, the latest of orders-value, .*{reason}"):
        RegistryWriter(stream_of("avro", "json"), TOPICS, registry)


def test_a_row_that_the_schema_does_not_take_is_named(server: FakeRegistry, tmp_path: Path) -> None:
    stream, registry = stream_of("avro", "json-schema"), SchemaRegistry(server.settings())
    registry.register("orders-value", WriterSchema("AVRO", json.dumps(_order(tip="double"))))
    strict = {"type": "object", "properties": {"from": {"type": "string"}}}
    registry.register("arrivals-value", WriterSchema("JSON", json.dumps(strict)))
    writer, [first, *_] = RegistryWriter(stream, TOPICS, registry), rows(stream, tmp_path)
    with pytest.raises(DataError, match=r"schema 1, the latest of orders-value, does not take .*o0.*tip"):
        writer.interaction(first)
    with pytest.raises(DataError, match=r"schema 2, the latest of arrivals-value, does not take .*string"):
        writer.label(first)


def test_protobuf_is_refused(server: FakeRegistry) -> None:
    with pytest.raises(ConfigError, match=r"labels\.format is protobuf: only messages in JSON"):
        RegistryWriter(stream_of("avro", "protobuf"), TOPICS, SchemaRegistry(server.settings()))


def test_a_name_that_avro_does_not_have_is_refused(server: FakeRegistry) -> None:
    stream = stream_of("avro", "json")
    named = stream.interactions.model_copy(update={"event_id": "/order-id"})
    other = stream.model_copy(update={"interactions": named})
    with pytest.raises(ConfigError, match=r"orders-value has no schema, .*'order-id'"):
        RegistryWriter(other, TOPICS, SchemaRegistry(server.settings()))


def test_a_registry_that_does_not_answer_is_named(server: FakeRegistry) -> None:
    server.status = 503
    with pytest.raises(RegistryError, match=f"{server.url} does not answer: HTTP 503"):
        RegistryWriter(stream_of("avro", "json"), TOPICS, SchemaRegistry(server.settings()))
