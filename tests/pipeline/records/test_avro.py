"""Messages in Avro: evolution, logical types, and all that a hostile message or schema can be."""

from __future__ import annotations

import json
import math
import time
import tracemalloc
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.stream import Stream, TimeUnit
from pipeline.records.decoding import Record, RejectedRecord, decode
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Interaction, Label
from pipeline.records.names import Fault
from pipeline.records.schemas import WriterSchema
from tests.support.examples import examples
from tests.support.schemas import (
    ORDER,
    TIME,
    Schemas,
    avro,
    avro_schema,
    changed,
    decoders,
    framed,
    order,
    stream_of,
    without,
)

import fastavro  # isort: skip # after the check for it

LATEST = 2**53
LIST: dict[str, Any] = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}


def decoded(value: bytes | None, *schemas: WriterSchema, key: bytes = b"c7", **interactions: Any) -> Record:
    found = decoders("avro", *schemas, **interactions).interactions
    [record] = decode([key], [value], found, LATEST)
    return record


def rejection(value: bytes | None, *schemas: WriterSchema, **interactions: Any) -> RejectedRecord:
    record = decoded(value, *schemas, **interactions)
    assert isinstance(record, RejectedRecord)
    return record


def with_field(type_: Any, value: Any) -> tuple[WriterSchema, bytes]:
    """A schema with one more field in front, and a message."""
    schema = {**ORDER, "fields": [{"name": "more", "type": type_}, *ORDER["fields"]]}
    return avro_schema(schema), avro(schema, order(more=value))


def test_the_named_fields_are_read_wherever_they_are() -> None:
    record = decoded(avro(ORDER, order()), avro_schema(ORDER))
    assert isinstance(record, Interaction)
    assert (record.event_id, record.ids, record.timestamp) == ("o1", ("c7", 3), TIME)


def test_a_batch_has_messages_of_older_and_newer_schemas() -> None:
    newer = {**ORDER, "fields": [*ORDER["fields"], {"name": "tip", "type": "double", "default": 0.0}]}
    found = decoders("avro", avro_schema(ORDER), avro_schema(newer), avro_schema(without("from")))
    values = [
        avro(ORDER, order(), 1),
        avro(newer, order(order="o2", tip=1.5), 2),
        avro(without("from"), order(order="o3"), 3),
        avro(ORDER, order(order="o4"), 1),
    ]
    records = decode([b"c7"] * 4, [*values], found.interactions, LATEST)
    assert [getattr(record, "event_id", None) for record in records] == ["o1", "o2", None, "o4"]
    assert records[2] == RejectedRecord(Fault.INVALID, "schema 3: Object missing required field `from`")


@pytest.mark.parametrize(
    ("type_", "at", "unit"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, TIME, "s"),
        ({"type": "long", "logicalType": "timestamp-micros"}, 1000 * TIME + 999, "iso8601"),
        (["null", {"type": "long", "logicalType": "timestamp-micros"}], 1000 * TIME, "ms"),
        ("long", TIME, "ms"),
        ("long", 1000 * TIME, "us"),
        ("double", TIME / 1000, "s"),
        ("string", "2026-03-01T12:00:00.250Z", "iso8601"),
    ],
)
def test_the_schema_says_the_unit_of_times_if_it_says_one(type_: Any, at: Any, unit: TimeUnit) -> None:
    times = {"type": "record", "name": "Times", "fields": [{"name": "at", "type": type_}]}
    schema = changed("times", times)
    record = decoded(avro(schema, order(times={"at": at})), avro_schema(schema), time_unit=unit)
    assert isinstance(record, Interaction)
    assert record.timestamp == TIME


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (without("order"), "Object missing required field `order`"),
        (changed("courier", {"type": "record", "name": "C", "fields": [{"name": "x", "type": "int"}]}),
         "Object missing required field `id` - at `$.courier`"),
        (changed("from", "bytes"), "Expected `int | str`, got `bytes` - at `$.from`"),
        (changed("from", "double"), "Expected `int | str`, got `double` - at `$.from`"),
        (changed("from", ["null", "boolean"]), "Expected `int | str`, got `null | boolean` - at `$.from`"),
        (changed("from", {"type": "array", "items": "int"}),
         "Expected `int | str`, got `array` - at `$.from`"),
        (changed("from", ["int", {"type": "array", "items": "int"}]),
         "Expected `int | str`, got `int | array` - at `$.from`"),
        (changed("courier", "string"), "Expected `object`, got `string` - at `$.courier`"),
        (changed("courier", {"type": "map", "values": "string"}),
         "Expected `object`, got `map` - at `$.courier`"),
        (changed("times", {"type": "record", "name": "T", "fields": [
            {"name": "at", "type": {"type": "int", "logicalType": "date"}}]}),
         "Expected a time of timestamp-millis or timestamp-micros, got `date` - at `$.times.at`"),
        (changed("times", {"type": "record", "name": "T", "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "local-timestamp-millis"}}]}),
         "got `local-timestamp-millis` - at `$.times.at`"),
        ("string", "Expected `object`, got `string`"),
        (LIST, "L contains itself, which is not supported"),
        (changed("note", LIST), "food.L contains itself, which is not supported"),
        (changed("note", {"type": "array", "items": "null"}), "an array of items without bytes"),
        (changed("note", {"type": "array", "items": {"type": "record", "name": "E", "fields": []}}),
         "an array of items without bytes"),
        ({"type": "record"}, "it is no schema of Avro that can be read"),
        ([], "Expected `object`, got ``"),
        (None, "it is no schema of Avro that can be read"),
        (changed("note", "nothing.Known"), "it is no schema of Avro that can be read"),
    ],
)  # fmt: skip
def test_a_schema_that_gives_no_record_refuses_each_of_its_messages(schema: Any, reason: str) -> None:
    found = rejection(framed(1, b"anything"), avro_schema(schema))
    assert found.fault is Fault.INVALID
    assert found.reason.startswith("schema 1: ")
    assert reason in found.reason


def test_schemas_that_are_too_large_or_too_deep_are_refused() -> None:
    deep: Any = "int"
    for _ in range(100):
        deep = {"type": "array", "items": deep}
    wide = "int"
    types: list[dict[str, Any]] = []
    for level in range(30):  # each doubles what the one before stands for
        types.append({"type": "record", "name": f"W{level}", "fields": [
            {"name": "a", "type": wide}, {"name": "b", "type": wide}]})  # fmt: skip
        wide = f"food.W{level}"
    wide_schema = avro_schema(
        changed("note", wide), *((each["name"], each | {"namespace": "food"}) for each in types)
    )
    for schema, reason in (
        (avro_schema(changed("note", deep)), "nested more than 64 deep"),
        (WriterSchema("AVRO", "[" * 100_000), "it is no schema of Avro"),
        (WriterSchema("AVRO", "x" * 2**21), "more than 1,048,576 characters"),
        (wide_schema, "more than 20,000 types"),
        (WriterSchema("JSON", "{}"), "it is of JSON, and the input's format is avro"),
    ):
        assert reason in rejection(framed(1, b""), schema).reason


def test_types_of_other_schemas_are_found_by_their_names_and_may_be_there_twice() -> None:
    person = {"type": "record", "name": "Person", "namespace": "food", "fields": [
        {"name": "nick", "type": "string"}, {"name": "id", "type": "string"}]}  # fmt: skip
    color = {"type": "enum", "name": "Kind", "symbols": ["o1", "o2"]}
    schema = {**ORDER, "fields": [
        {"name": "guest", "type": "food.Person"},
        {"name": "order", "type": color},
        {"name": "other", "type": ["null", "food.Kind"]},
        {"name": "courier", "type": "food.Person"},
        {"name": "from", "type": "Kind"},
        *ORDER["fields"][3:4],
    ]}  # fmt: skip
    value = order(guest={"nick": "g", "id": "g1"}, courier={"nick": "n", "id": "c7"}, other="o2")
    value |= {"from": "o2"}
    file = BytesIO()
    named: dict[str, Any] = {}
    fastavro.parse_schema(person, named_schemas=named)
    bare = json.loads(json.dumps(schema).replace("logicalType", "ignored"))
    fastavro.schemaless_writer(file, fastavro.parse_schema(bare, named_schemas=named), value)
    record = decoded(framed(1, file.getvalue()), avro_schema(schema, ("food.Person", person)))
    assert isinstance(record, Interaction)
    assert (record.event_id, record.ids) == ("o1", ("c7", "o2"))


def test_types_may_have_properties_of_other_programs() -> None:
    schema = changed("order", {"type": "string", "avro.java.string": "String"})
    schema = changed(
        "note", ["null", {"type": "bytes", "logicalType": "decimal", "precision": 4}], schema=schema
    )
    assert isinstance(decoded(avro(schema, order(note=b"x")), avro_schema(schema)), Interaction)


def test_null_where_a_value_has_to_be_is_invalid() -> None:
    schema = changed("from", ["null", "int"])
    found = rejection(avro(schema, order(**{"from": None})), avro_schema(schema))
    assert found == RejectedRecord(Fault.INVALID, "Expected `int | str`, got `null` - at `$.from`")
    nullable = changed("courier", ["null", ORDER["fields"][1]["type"]])
    found = rejection(avro(nullable, order(courier=None)), avro_schema(nullable))
    assert found == RejectedRecord(Fault.INVALID, "Expected `object`, got `null` - at `$.courier`")
    assert isinstance(decoded(avro(nullable, order()), avro_schema(nullable)), Interaction)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the value is null (a tombstone)"),
        (b"", "the value begins with b''"),
        (b"\0\0\0", "the value begins with b'\\x00\\x00\\x00'"),
        (b'{"order":"o1"}', "not with the magic byte 0"),
        (b"\1" + avro(ORDER, order())[1:], "not with the magic byte 0"),
        (framed(9, b"x"), "schema 9 is not in the registry"),
        (b"\0\xff\xff\xff\xff123", "the value names schema 4294967295, and no id is above 2147483647"),
        (avro(ORDER, order()) + b"\0", "1 bytes are left after the value's last field"),
        (framed(1, b"\x04\xff\xfe" + avro(ORDER, order())[8:]), "text that is not UTF-8"),
        (framed(1, b"\xff" * 40), "the value is"),
    ],
)
def test_malformed_messages_are_undecodable(value: bytes | None, reason: str) -> None:
    found = rejection(value, avro_schema(ORDER))
    assert found.fault is Fault.UNDECODABLE
    assert reason in found.reason


def test_a_message_that_is_cut_off_anywhere_is_undecodable() -> None:
    value = avro(ORDER, order())
    for length in range(len(value)):
        assert rejection(value[:length], avro_schema(ORDER)).fault is Fault.UNDECODABLE


@pytest.mark.parametrize("items", ["boolean", "float", "double", {"type": "fixed", "name": "F", "size": 3}])
@pytest.mark.parametrize("wrapped", [False, True])
def test_an_array_that_claims_more_items_than_there_are_ends_at_once(items: Any, wrapped: bool) -> None:
    if wrapped:
        items = {
            "type": "array",
            "items": {"type": "record", "name": "I", "fields": [{"name": "x", "type": items}]},
        }
    schema, good = with_field({"type": "array", "items": items}, [])
    assert isinstance(decoded(good, schema), Interaction)
    begin = time.monotonic()
    # 2 ** 62 items, in the zigzag code
    for payload in (b"\x80" * 9 + b"\x01", b"\x80" * 8 + b"\x40"):
        assert rejection(framed(1, payload + good[5:]), schema).fault is Fault.UNDECODABLE
    assert time.monotonic() - begin < 30.0


def test_what_is_skipped_takes_no_memory() -> None:
    item = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "boolean"}]}
    schema, value = with_field({"type": "array", "items": item}, [{"x": True}] * 200_000)
    found = decoders("avro", schema).interactions
    assert isinstance(found.decode(value), Interaction)
    tracemalloc.start()
    try:
        assert isinstance(found.decode(value), Interaction)
        assert tracemalloc.get_traced_memory()[1] < 5 * len(value)
    finally:
        tracemalloc.stop()


def test_large_and_negative_lengths_cost_nothing() -> None:
    for payload in (b"\xff" * 9 + b"\x01", b"\x09", b"\xfe" * 9 + b"\x01", b"\x80" * 9 + b"\x01"):
        found = rejection(framed(1, payload + b"abc"), avro_schema(ORDER))
        assert found.fault is Fault.UNDECODABLE


@examples(500)
@given(payload=st.binary(max_size=60), cut=st.integers(0, 40))
def test_no_bytes_make_anything_but_a_record_or_a_rejection(payload: bytes, cut: int) -> None:
    value = avro(ORDER, order())
    records = decode(
        [b"c7"] * 2,
        [framed(1, payload), value[:cut] + payload],
        decoders("avro", avro_schema(ORDER))[0],
        LATEST,
    )
    assert all(isinstance(record, Interaction | RejectedRecord) for record in records)


ids = st.text(min_size=1, max_size=8) | st.integers(-(2**63), 2**63 - 1)


@examples(300)
@given(event=ids, courier=ids, item=ids, at=st.integers(-5, 2**60), note=st.none() | st.text(max_size=5))
def test_avro_gives_what_json_gives(event: Any, courier: Any, item: Any, at: int, note: str | None) -> None:
    """The oracle is the decoder of JSON, given the same values."""
    either = ["long", "string"]
    schema = changed("order", either) | {"name": "Free"}
    schema = changed("from", either, schema=schema)
    schema = changed(
        "courier", {"type": "record", "name": "C", "fields": [{"name": "id", "type": either}]}, schema=schema
    )
    schema = changed(
        "times", {"type": "record", "name": "T", "fields": [{"name": "at", "type": "long"}]}, schema=schema
    )
    value = order(order=event, courier={"id": courier}, times={"at": at}, note=note) | {"from": item}
    key = str(courier).encode(errors="replace")
    try:
        message = avro(schema, value)
    except UnicodeEncodeError:  # half a surrogate pair, which Avro cannot write
        return
    unit = {"time_unit": "us"}
    [found] = decode([key], [message], decoders("avro", avro_schema(schema), **unit).interactions, LATEST)
    text = json.dumps(value).encode()
    [expected] = decode([key], [text], decoders("json", **unit).interactions, LATEST)
    if isinstance(expected, RejectedRecord):
        assert found == expected
    else:
        names = expected.__struct_fields__
        assert [getattr(found, name) for name in names] == [getattr(expected, name) for name in names]


FEATURES = {
    "load": {"kind": "vector", "field": "/load", "length": 2, "missing": 0.0},
    "express": {"kind": "boolean", "field": "/express", "missing": False},
}


def with_features(schema: dict[str, Any]) -> InputDecoders:
    stream = stream_of("avro").model_dump(mode="json") | {"features": FEATURES}
    return InputDecoders.of(Stream.model_validate(stream), Schemas(avro_schema(schema)))


@pytest.mark.parametrize(
    ("fields", "values", "expected"),
    [
        ([], {}, (None, None)),
        ([("load", {"type": "array", "items": "double"})], {"load": [0.5, 2.0]}, ([0.5, 2.0], None)),
        ([("load", ["null", {"type": "array", "items": "int"}])], {"load": [1, 2]}, ([1.0, 2.0], None)),
        ([("load", ["null", {"type": "array", "items": "int"}])], {"load": None}, (None, None)),
        ([("express", ["null", "boolean"])], {"express": True}, (None, True)),
    ],
)
def test_features_are_read_where_the_schema_has_them(
    fields: list[tuple[str, Any]], values: dict[str, Any], expected: tuple[Any, Any]
) -> None:
    more = [{"name": name, "type": kind} for name, kind in fields]
    schema = ORDER | {"fields": [*ORDER["fields"], *more]}
    compiled = with_features(schema).interactions
    [record] = decode([b"c7"], [avro(schema, order() | values)], compiled, LATEST)
    assert (getattr(record, "feature_0", ""), getattr(record, "feature_1", "")) == expected


@pytest.mark.parametrize(
    ("kind", "values", "reason"),
    [
        ("double", 0.5, "Expected `array of float`, got `double` - at `$.load`"),
        ({"type": "array", "items": "string"}, ["a"], "Expected `array of float`, got `array` - at `$.load`"),
        ({"type": "array", "items": "double"}, [0.5], "Expected `array` of length >= 2 - at `$.load`"),
    ],
)
def test_a_vector_of_another_type_or_length_is_invalid(kind: Any, values: Any, reason: str) -> None:
    schema = ORDER | {"fields": [*ORDER["fields"], {"name": "load", "type": kind}]}
    compiled = with_features(schema).interactions
    [record] = decode([b"c7"], [avro(schema, order() | {"load": values})], compiled, LATEST)
    assert isinstance(record, RejectedRecord)
    assert record.fault is Fault.INVALID
    assert reason in record.reason


def label_of(kind: Any, weight: Any) -> Record:
    """Decode a label whose weight has a type of Avro."""
    labels = {"time": "/times/at", "time_unit": "ms", "weight": "/worth"}
    stream = stream_of("avro").model_dump(mode="json")
    more = [{"name": "on_time", "type": "boolean"}, {"name": "worth", "type": kind}]
    schema = ORDER | {"fields": [*ORDER["fields"], *more]}
    made = Stream.model_validate(stream | {"labels": stream["labels"] | labels})
    found = InputDecoders.of(made, Schemas(avro_schema(schema))).labels
    [record] = decode([b"c7"], [avro(schema, order(on_time=True, worth=weight))], found, LATEST)
    return record


@pytest.mark.parametrize(
    ("kind", "weight"),
    [("double", 2.5), ("float", 0.5), ("int", 3), ("long", 1000), (["null", "double"], 0.0)],
)
def test_a_label_s_weight_is_any_number(kind: Any, weight: float) -> None:
    record = label_of(kind, weight)
    assert isinstance(record, Label)
    assert (record.weight, record.watch_ratio) == (weight, 1.0)


@pytest.mark.parametrize(
    ("kind", "weight", "reason"),
    [
        ("double", math.nan, "Expected `float` >= 0.0 - at `$.worth`"),
        ("double", math.inf, "Expected `float` <= 1000.0 - at `$.worth`"),
        ("double", -0.5, "Expected `float` >= 0.0 - at `$.worth`"),
        ("long", 1001, "Expected `float` <= 1000.0 - at `$.worth`"),
        (["null", "double"], None, "Expected `float`, got `null` - at `$.worth`"),
        ("string", "2.0", "Expected `float`, got `string` - at `$.worth`"),
        ("boolean", True, "Expected `float`, got `boolean` - at `$.worth`"),
    ],
)
def test_what_is_no_weight_is_invalid_with_its_field(kind: Any, weight: Any, reason: str) -> None:
    record = label_of(kind, weight)
    assert isinstance(record, RejectedRecord)
    assert record.fault is Fault.INVALID
    assert reason in record.reason
