"""Slates in the formats of a schema registry: what JSON gives, and all that can be wrong with a list."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.stream import Format, Stream
from pipeline.records.decoding import Record, RejectedRecord, decode
from pipeline.records.derived_schemas import derived_schema
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Slate
from pipeline.records.schemas import WriterSchema
from tests.support.examples import examples
from tests.support.schemas import Schemas, avro, avro_schema, changed, framed, proto_field, proto_schema
from tests.support.slates import SLATES

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto  # isort: skip # of the extra
from google.protobuf.descriptor_pool import DescriptorPool  # isort: skip # as above
from google.protobuf.message_factory import GetMessageClass  # isort: skip # as above

AT = 1_772_366_400_250
ITEM: dict[str, Any] = {
    "type": "record",
    "name": "Item",
    "fields": [
        {"name": "video_duration", "type": "double"},
        {"name": "title", "type": "string"},
        {"name": "video_id", "type": ["string", "long"]},
        {"name": "fresh", "type": ["null", "boolean"]},
    ],
}
PAGE: dict[str, Any] = {
    "type": "record",
    "name": "Page",
    "fields": [
        {"name": "event_id", "type": "string"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "items", "type": {"type": "array", "items": ITEM}},
        {"name": "user_id", "type": "long"},
        {"name": "timestamp", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
BYTES = changed("video_id", "bytes", schema=ITEM)


def stream_in(format_: Format) -> Stream:
    definition = SLATES.model_dump()
    definition["interactions"] = definition["interactions"] | {
        "format": format_,
        "item_fields": ("video_id", "video_duration", "fresh"),
    }
    definition["features"] = {"fresh": {"kind": "boolean", "field": "/fresh", "missing": False}}
    return Stream.model_validate(definition)


def decoded(format_: Format, value: bytes, *schemas: WriterSchema) -> Record:
    found = InputDecoders.of(stream_in(format_), Schemas(*schemas)).interactions
    [record] = decode([b"7"], [value], found, 2**53)
    return record


def reason_of(format_: Format, value: bytes, *schemas: WriterSchema) -> str:
    record = decoded(format_, value, *schemas)
    assert isinstance(record, RejectedRecord)
    return f"{record.fault}: {record.reason}"


def item(video: int | str, duration: float = 5.0, fresh: bool | None = None) -> dict[str, Any]:
    return {"video_id": video, "video_duration": duration, "fresh": fresh, "title": "…"}


def page(items: Any, event: str = "e1") -> dict[str, Any]:
    return {"event_id": event, "note": None, "items": items, "user_id": 7, "timestamp": 1000 * AT}


def said(record: Record) -> Any:
    assert isinstance(record, Slate)
    ids = [(each.event_id, each.ids, each.timestamp) for each in record.items]
    fields = [(getattr(each, "number_video_duration"), getattr(each, "feature_0")) for each in record.items]  # noqa: B009  # of a type made from the definition
    return record.event_id, record.timestamp, ids, fields


items = st.lists(
    st.builds(
        item,
        st.integers(0, 2**40) | st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1),
        st.floats(0, 1e6),
        st.none() | st.booleans(),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda each: each["video_id"],
)


@examples(60)
@given(items)
def test_avro_gives_what_json_gives(shown: list[dict[str, Any]]) -> None:
    plain = [{name: value for name, value in each.items() if value is not None} for each in shown]
    in_json = decoded("json", json.dumps(page(plain) | {"timestamp": AT}).encode())
    assert said(decoded("avro", avro(PAGE, page(shown)), avro_schema(PAGE))) == said(in_json)
    json_schema = WriterSchema("JSON", '{"type": "object"}')
    framed_json = framed(1, json.dumps(page(plain) | {"timestamp": AT}).encode())
    assert said(decoded("json-schema", framed_json, json_schema)) == said(in_json)


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        ([], "Expected `array` of length >= 1 - at `$.items`"),
        ([item(n) for n in range(6)], "Expected `array` of length <= 5 - at `$.items`"),
        ([item(1), item("")], "Expected `str` of length >= 1 - at `$.items[1].video_id`"),
        ([item(1), item(2, -1.0)], "Expected `float` >= 0.0 - at `$.items[1].video_duration`"),
        (
            [item(1), item(2), item(1)],
            "The item 1 is in the slate twice, also as `items[0]` - at `$.items[2].video_id`",
        ),
    ],
)
def test_a_list_that_is_not_as_it_should_be_is_invalid_in_each_format(shown: Any, reason: str) -> None:
    assert reason_of("avro", avro(PAGE, page(shown)), avro_schema(PAGE)) == f"invalid: {reason}"
    if not any(each["video_id"] == "" for each in shown):
        assert reason_of("protobuf", proto_page(shown), PROTO_SCHEMA) == f"invalid: {reason}"


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (changed("items", "string", schema=PAGE), "Expected `array of object`, got `string` - at `$.items`"),
        (changed("items", ITEM, schema=PAGE), "Expected `array of object`, got `record` - at `$.items`"),
        (
            changed("items", ["null", "long", {"type": "array", "items": ITEM}], schema=PAGE),
            "Expected `array of object`, got `null | long | array` - at `$.items`",
        ),
        (
            changed("items", {"type": "array", "items": "long"}, schema=PAGE),
            "Expected `object`, got `long` - at `$.items[...]`",
        ),
        (
            changed(
                "items", {"type": "array", "items": changed("video_id", "bytes", schema=ITEM)}, schema=PAGE
            ),
            "Expected `int | str`, got `bytes` - at `$.items[...].video_id`",
        ),
        (
            changed("items", {"type": "array", "items": {**ITEM, "fields": ITEM["fields"][1:]}}, schema=PAGE),
            "Object missing required field `video_duration` - at `$.items[...]`",
        ),
        ({**PAGE, "fields": PAGE["fields"][3:]}, "Object missing required field `event_id`"),
    ],
)
def test_a_schema_of_avro_that_has_no_such_list_refuses_each_of_its_messages(
    schema: Any, reason: str
) -> None:
    assert reason_of("avro", framed(1, b"any"), avro_schema(schema)) == f"invalid: schema 1: {reason}"


def test_a_list_of_avro_may_be_null_in_its_schema_but_not_in_a_message() -> None:
    schema = changed("items", ["null", {"type": "array", "items": ["null", ITEM]}], schema=PAGE)
    assert said(decoded("avro", avro(schema, page([item(1)])), avro_schema(schema)))[2][0][1] == (7, 1)
    for shown, reason in (
        (None, "Expected `array`, got `null` - at `$.items`"),
        ([item(1), None], "Expected `object`, got `null` - at `$.items[1]`"),
    ):
        assert reason_of("avro", avro(schema, page(shown)), avro_schema(schema)) == f"invalid: {reason}"


def test_a_message_of_avro_that_is_cut_off_anywhere_is_undecodable() -> None:
    value = avro(PAGE, page([item(1), item("b")]))
    for end in range(6, len(value)):
        assert reason_of("avro", value[:end], avro_schema(PAGE)).startswith("undecodable: ")


def proto_file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="page.proto", package="shelf", syntax="proto3")
    message = file.message_type.add(name="Page")
    own = message.nested_type.add(name="Item")
    own.field.append(proto_field("video_id", 1, "int64"))
    own.field.append(proto_field("video_duration", 2, "double"))
    own.field.append(proto_field("fresh", 3, "bool", proto3_optional=True, oneof_index=0))
    own.oneof_decl.add(name="_fresh")
    message.field.append(proto_field("event_id", 1, "string"))
    message.field.append(proto_field("user_id", 2, "int64"))
    message.field.append(proto_field("timestamp", 3, "int64"))
    repeated = FieldDescriptorProto.LABEL_REPEATED
    message.field.append(proto_field("items", 4, "message", ".shelf.Page.Item", label=repeated))
    return file


PROTO_SCHEMA = proto_schema(proto_file())


def proto_page(shown: list[dict[str, Any]]) -> bytes:
    pool = DescriptorPool()
    pool.AddSerializedFile(proto_file().SerializeToString())
    message = GetMessageClass(pool.FindMessageTypeByName("shelf.Page"))()
    message.event_id, message.user_id, message.timestamp = "e1", 7, AT
    for each in shown:
        fields = {name: value for name, value in each.items() if name != "title" and value is not None}
        message.items.add(**fields)
    return framed(1, b"\0" + message.SerializeToString())


def test_protobuf_gives_what_json_gives() -> None:
    shown = [item(3, 2.5), item(0, 0.0, fresh=False), item(2**40, 1e6, fresh=True)]
    plain = [{name: value for name, value in each.items() if value is not None} for each in shown]
    in_json = decoded("json", json.dumps(page(plain) | {"timestamp": AT}).encode())
    assert said(decoded("protobuf", proto_page(shown), PROTO_SCHEMA)) == said(in_json)


@pytest.mark.parametrize(
    ("kind", "label", "reason"),
    [
        ("string", "REPEATED", "Expected `array of object`, got `repeated string` - at `$.items`"),
        ("message", "OPTIONAL", "Expected `array of object`, got `shelf.Page.Item` - at `$.items`"),
        ("message", "REPEATED", "Object missing required field `video_id` - at `$.items[...]`"),
    ],
)
def test_a_type_of_protobuf_that_has_no_such_list_refuses_each_of_its_messages(
    kind: str, label: str, reason: str
) -> None:
    file = proto_file()
    [message] = file.message_type
    del message.field[-1]
    if label == "REPEATED":
        del message.nested_type[0].field[0]
    name = ".shelf.Page.Item" if kind == "message" else ""
    number = getattr(FieldDescriptorProto, f"LABEL_{label}")
    message.field.append(proto_field("items", 4, kind, name, label=number))
    assert reason_of("protobuf", framed(1, b"\0"), proto_schema(file)) == f"invalid: shelf.Page: {reason}"


def test_a_list_of_protobuf_that_is_too_long_is_not_read_to_its_end() -> None:
    """An item without a field takes two bytes, and a dictionary a hundred."""
    value = proto_page([]) + b"\x22\x00" * 200_000
    tracemalloc.start()
    try:
        assert reason_of("protobuf", value, PROTO_SCHEMA).endswith("of length <= 5 - at `$.items`")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("format_", ["avro", "json-schema"])
def test_the_schema_that_is_derived_has_the_list(format_: Format) -> None:
    stream = stream_in(format_)
    schema = derived_schema(stream, stream.interactions)
    message = page([item(3), item("b", 1.0, fresh=True)]) | {"timestamp": AT}
    for each in message["items"]:
        del each["title"]
    text = json.loads(schema.text)
    if format_ == "avro":
        value = avro(text, message)
    else:
        del message["items"][0]["fresh"]
        jsonschema.validate(message, text)
        assert text["properties"]["items"]["items"]["required"] == ["video_id", "video_duration"]
        value = framed(1, json.dumps(message).encode())
    assert said(decoded(format_, value, schema))[2] == [("e1", (7, 3), AT), ("e1", (7, "b"), AT)]


@examples(100)
@given(st.binary(max_size=60), st.integers(0, 80))
def test_no_bytes_make_anything_but_a_record_or_a_rejection(payload: bytes, cut: int) -> None:
    good = avro(PAGE, page([item(1), item("b")]))
    for format_, value, schema in (
        ("avro", good[:cut] + payload, avro_schema(PAGE)),
        ("protobuf", proto_page([item(1), item(2)])[:cut] + payload, PROTO_SCHEMA),
    ):
        record = decoded(format_, value, schema)  # type: ignore[arg-type]  # the two names
        assert isinstance(record, Slate | RejectedRecord)
