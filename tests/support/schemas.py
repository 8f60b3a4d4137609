"""Schemas and messages in the wire format of Confluent's serializers, of a stream of deliveries."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import pytest

from pipeline.config.stream import Format, Stream
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.schemas import SchemaUnavailableError, UnknownSchemaError, WriterSchema
from tests.pipeline.records.test_input_decoders import DELIVERIES

for package in ("authlib", "fastavro", "google.protobuf"):
    pytest.importorskip(package, reason="the extra `registry` is not installed")

import fastavro  # noqa: E402 - only where it is installed
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto  # noqa: E402 - as above
from google.protobuf.descriptor_pool import DescriptorPool  # noqa: E402 - as above
from google.protobuf.message_factory import GetMessageClass  # noqa: E402 - as above
from google.protobuf.timestamp_pb2 import DESCRIPTOR  # noqa: E402 - as above

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "food",
    "fields": [
        {"name": "order", "type": "string"},
        {
            "name": "courier",
            "type": {
                "type": "record",
                "name": "Courier",
                "fields": [{"name": "nick", "type": ["null", "string"]}, {"name": "id", "type": "string"}],
            },
        },
        {"name": "from", "type": "int"},
        {
            "name": "times",
            "type": {
                "type": "record",
                "name": "Times",
                "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}],
            },
        },
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
TIME = 1_772_366_400_250


def changed(field: str, type_: Any, *, schema: Mapping[str, Any] = ORDER) -> dict[str, Any]:
    """Return the schema with another type of a field."""
    fields = [each | {"type": type_} if each["name"] == field else each for each in schema["fields"]]
    return {**schema, "fields": fields}


def without(field: str) -> dict[str, Any]:
    """Return the schema without a field."""
    return {**ORDER, "fields": [each for each in ORDER["fields"] if each["name"] != field]}


def order(**changes: Any) -> dict[str, Any]:
    """Return an order."""
    return {
        "order": "o1",
        "courier": {"nick": None, "id": "c7"},
        "from": 3,
        "times": {"at": TIME},
        "note": "ring twice",
    } | changes


def framed(schema_id: int, payload: bytes) -> bytes:
    """Return a message: magic byte, schema id, payload."""
    return b"\0" + schema_id.to_bytes(4) + payload


def avro(schema: Any, value: Any, schema_id: int = 1) -> bytes:
    """Return a message in Avro, encoded without a look at logical types."""
    file = BytesIO()
    bare = json.loads(json.dumps(schema).replace("logicalType", "ignored"))
    fastavro.schemaless_writer(file, fastavro.parse_schema(bare), value)
    return framed(schema_id, file.getvalue())


def avro_schema(schema: Any, *references: tuple[str, Any]) -> WriterSchema:
    """Return a schema as the registry gives it."""
    texts = tuple((name, json.dumps(text)) for name, text in references)
    return WriterSchema("AVRO", json.dumps(schema), texts)


class Schemas:
    """A source that knows some schemas, with ids from 1 on, and counts how often it is asked."""

    def __init__(self, *schemas: WriterSchema) -> None:
        self.known = dict(enumerate(schemas, start=1))
        self.away = False
        self.asked = 0

    def get(self, schema_id: int) -> WriterSchema:
        self.asked += 1
        if self.away:
            raise SchemaUnavailableError(schema_id)
        if schema_id not in self.known:
            raise UnknownSchemaError(schema_id)
        return self.known[schema_id]


def stream_of(format_: Format, **interactions: Any) -> Stream:
    """Return the stream of deliveries with both inputs in a format."""
    changes = {
        name: DELIVERIES[name] | {"format": format_} | (interactions if name == "interactions" else {})
        for name in ("interactions", "labels")
    }
    return Stream.model_validate(DELIVERIES | changes)


def decoders(format_: Format, *schemas: WriterSchema, **interactions: Any) -> InputDecoders:
    """Return the decoders of deliveries."""
    return InputDecoders.of(stream_of(format_, **interactions), Schemas(*schemas))


def proto_field(
    name: str, number: int, kind: str, type_name: str = "", **settings: Any
) -> FieldDescriptorProto:
    """Return a field of a Protobuf message."""
    type_ = getattr(FieldDescriptorProto, f"TYPE_{kind.upper()}")
    label = settings.pop("label", FieldDescriptorProto.LABEL_OPTIONAL)
    return FieldDescriptorProto(
        name=name, number=number, type=type_, label=label, type_name=type_name or None, **settings
    )


def order_file() -> FileDescriptorProto:
    """Return the descriptor of an order in Protobuf, as the second type of its file."""
    file = FileDescriptorProto(name="order.proto", package="food", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="Other").field.add(name="x", number=1, type=3, label=1)
    message = file.message_type.add(name="Order")
    courier = message.nested_type.add(name="Courier")
    courier.field.append(proto_field("id", 1, "string"))
    times = message.nested_type.add(name="Times")
    times.field.append(proto_field("at", 1, "message", ".google.protobuf.Timestamp"))
    message.field.append(proto_field("order", 1, "string"))
    message.field.append(proto_field("courier", 2, "message", ".food.Order.Courier"))
    message.field.append(proto_field("from", 3, "int64"))
    message.field.append(proto_field("times", 4, "message", ".food.Order.Times"))
    return file


def order_class(file: FileDescriptorProto, *others: FileDescriptorProto) -> Any:
    """Return the class of orders that protoc would make of a file and of those that it imports."""
    pool = DescriptorPool()
    pool.AddSerializedFile(DESCRIPTOR.serialized_pb)
    for each in (*others, file):
        pool.AddSerializedFile(each.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("food.Order"))


def proto_schema(file: FileDescriptorProto, *references: tuple[str, FileDescriptorProto]) -> WriterSchema:
    """Return a schema as the registry gives it with `format=serialized`."""
    texts = tuple((name, b64encode(each.SerializeToString()).decode()) for name, each in references)
    return WriterSchema("PROTOBUF", b64encode(file.SerializeToString()).decode(), texts)
