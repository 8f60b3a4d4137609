"""Messages in Protobuf: types of a file, what is missing, and hostile bytes."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.stream import Stream
from pipeline.records.decoding import Record, RejectedRecord, decode
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Interaction
from pipeline.records.names import Fault
from pipeline.records.schemas import WriterSchema
from tests.support.examples import examples
from tests.support.schemas import (
    TIME,
    Schemas,
    decoders,
    framed,
    order_class,
    order_file,
    proto_field,
    proto_schema,
    stream_of,
)

from confluent_kafka.schema_registry import SchemaRegistryClient  # isort: skip # after the check for it
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer  # isort: skip # as above
from confluent_kafka.serialization import MessageField, SerializationContext  # isort: skip # as above
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto  # isort: skip # as above

SECOND_TYPE = b"\x02\x02"
"""One number, 1, in the zigzag code."""


def decoded(value: bytes | None, schema: WriterSchema, **interactions: Any) -> Record:
    found = decoders("protobuf", schema, **interactions).interactions
    [record] = decode([b"c7"], [value], found, 2**53)
    return record


def rejection(value: bytes | None, schema: WriterSchema) -> RejectedRecord:
    record = decoded(value, schema)
    assert isinstance(record, RejectedRecord)
    return record


def encoded(file: FileDescriptorProto, *others: FileDescriptorProto, **changes: Any) -> bytes:
    """Return an order, as the class that protoc would make writes it."""
    message = order_class(file, *others)()
    message.order, message.courier.id = changes.get("order", "o1"), changes.get("courier", "c7")
    setattr(message, "from", changes.get("item", 3))
    message.times.at.FromMilliseconds(changes.get("at", TIME))
    for name in changes.keys() & {"on_time", "worth"}:
        setattr(message, name, changes[name])
    if "load" in changes:
        message.load.extend(changes["load"])
    return bytes(message.SerializeToString())


def test_messages_of_confluent_s_serializer_are_read() -> None:
    file = order_file()
    order = order_class(file)(order="o1")
    order.courier.id = "c7"
    setattr(order, "from", 3)
    order.times.at.FromMilliseconds(TIME)
    with SchemaRegistryClient.new_client({"url": "mock://"}) as client:
        settings = {"use.deprecated.format": False}
        serializer = ProtobufSerializer(type(order), client, settings)
        value = serializer(order, SerializationContext("orders", MessageField.VALUE))
        schema = client.get_schema(int.from_bytes((value or b"")[1:5]))
    assert schema.schema_str is not None
    record = decoded(
        (value or b"").replace(value[:5], framed(1, b""), 1), WriterSchema("PROTOBUF", schema.schema_str)
    )
    assert isinstance(record, Interaction)
    assert (record.event_id, record.ids[1], record.timestamp) == ("o1", 3, TIME)


def test_the_named_fields_are_read_of_the_type_that_the_message_names() -> None:
    file = order_file()
    record = decoded(framed(1, SECOND_TYPE + encoded(file)), proto_schema(file))
    assert isinstance(record, Interaction)
    assert (record.event_id, record.ids, record.timestamp) == ("o1", ("c7", 3), TIME)


def test_a_zero_stands_for_the_first_type_and_nested_types_have_several_numbers() -> None:
    file = order_file()
    del file.message_type[0]
    assert isinstance(decoded(framed(1, b"\0" + encoded(file)), proto_schema(file)), Interaction)
    outer = FileDescriptorProto(name="outer.proto", syntax="proto3", package="food")
    outer.dependency.append("google/protobuf/timestamp.proto")
    outer.message_type.add(name="Outer").nested_type.append(order_file().message_type[1])
    for field in outer.message_type[0].nested_type[0].field:
        if field.type_name:
            field.type_name = field.type_name.replace(".food.Order", ".food.Outer.Order")
    value = framed(1, b"\x04\0\0" + encoded(file))
    assert isinstance(decoded(value, proto_schema(outer)), Interaction)


def test_a_file_may_import_others() -> None:
    common = FileDescriptorProto(name="common.proto", package="food", syntax="proto3")
    common.message_type.append(order_file().message_type[1].nested_type[0])
    file = order_file()
    file.dependency.append("common.proto")
    del file.message_type[1].nested_type[0]
    file.message_type[1].field[1].type_name = ".food.Courier"
    value = framed(1, SECOND_TYPE + encoded(file, common))
    assert isinstance(decoded(value, proto_schema(file, ("common.proto", common))), Interaction)
    assert "it is no schema of Protobuf that can be read" in rejection(value, proto_schema(file)).reason


def test_what_can_be_unset_is_missing_and_what_cannot_has_its_default() -> None:
    file = order_file()
    schema = proto_schema(file)
    whole = encoded(file)
    courier = b"\x12\x04\x0a\x02c7"
    assert courier in whole
    found = rejection(framed(1, SECOND_TYPE + whole.replace(courier, b"")), schema)
    assert found == RejectedRecord(Fault.INVALID, "Object missing required field `courier`")
    without_id = rejection(framed(1, SECOND_TYPE + whole.replace(courier, b"\x12\0")), schema)
    assert without_id.fault is Fault.INVALID
    assert "length >= 1 - at `$.courier.id`" in without_id.reason
    record = decoded(framed(1, SECOND_TYPE + encoded(file, item=0)), schema)
    assert isinstance(record, Interaction)
    assert record.ids[1] == 0


@pytest.mark.parametrize("unit", ["ms", "us", "s", "iso8601"])
def test_protobuf_s_own_times_need_no_unit(unit: str) -> None:
    file = order_file()
    value = framed(1, SECOND_TYPE + encoded(file))
    record = decoded(value, proto_schema(file), time_unit=unit)
    assert isinstance(record, Interaction)
    assert record.timestamp == TIME
    for seconds in (b"\xff" * 9 + b"\x01", b"\xff" * 8 + b"\x7f"):  # -1, and the largest there is
        wrong = value.replace(b"\x22\x0d\x0a\x0b\x08\xc0\xd4\x90\xcd\x06\x10\x80\xe5\x9a\x77", b"")
        assert wrong != value
        length = len(seconds)
        wrong += bytes([0x22, length + 3, 0x0A, length + 1, 0x08]) + seconds
        found = decoded(wrong, proto_schema(file), time_unit=unit)
        assert isinstance(found, RejectedRecord)
        assert found.fault is Fault.INVALID


def test_times_may_be_plain_numbers() -> None:
    file = order_file()
    [at] = file.message_type[1].nested_type[1].field
    at.CopyFrom(proto_field("at", 1, "int64"))
    message = order_class(file)()
    message.order, message.courier.id, message.times.at = "o1", "c7", 1000 * TIME
    record = decoded(framed(1, SECOND_TYPE + message.SerializeToString()), proto_schema(file), time_unit="us")
    assert isinstance(record, Interaction)
    assert record.timestamp == TIME


def _change(field: FieldDescriptorProto) -> FileDescriptorProto:
    file = order_file()
    [old] = [each for each in file.message_type[1].field if each.number == field.number]
    old.CopyFrom(field)
    return file


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (_change(proto_field("src", 3, "int64")), "food.Order: Object missing required field `from`"),
        (
            _change(proto_field("from", 3, "bytes")),
            "food.Order: Expected `int | str`, got `bytes` - at `$.from`",
        ),
        (_change(proto_field("from", 3, "double")), "Expected `int | str`, got `double` - at `$.from`"),
        (
            _change(proto_field("from", 3, "int64", label=FieldDescriptorProto.LABEL_REPEATED)),
            "Expected `int | str`, got `repeated int64` - at `$.from`",
        ),
        (_change(proto_field("courier", 2, "string")), "Expected `object`, got `string` - at `$.courier`"),
        (
            _change(proto_field("from", 3, "message", ".food.Order.Courier")),
            "Expected `int | str`, got `food.Order.Courier` - at `$.from`",
        ),
    ],
)
def test_a_type_that_does_not_fit_refuses_each_of_its_messages(
    file: FileDescriptorProto, reason: str
) -> None:
    found = rejection(framed(1, SECOND_TYPE + encoded(order_file())), proto_schema(file))
    assert found.fault is Fault.INVALID
    assert reason in found.reason


def test_the_first_type_may_not_fit_while_the_second_does() -> None:
    file = order_file()
    assert "food.Other: Object missing" in rejection(framed(1, b"\0"), proto_schema(file)).reason
    assert isinstance(decoded(framed(1, SECOND_TYPE + encoded(file)), proto_schema(file)), Interaction)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "cut off before it names the type"),
        (b"\x02", "cut off before it names the type"),
        (b"\xff\xff\xff\xff\xff\xff", "cut off before it names the type"),
        (b"\x02\x06", "the value names a type by [3], which its schema does not have"),
        (b"\x02\x01", "the value names a type by [-1], which its schema does not have"),
        (b"\x04\x02\x08", "the value names a type by [1, 4], which its schema does not have"),
        (b"\xfe\x01", "the value names a type by 127 numbers"),
        (b"\x01", "the value names a type by -1 numbers"),
        (SECOND_TYPE + b"\x0a\x7f", "is no message of its schema"),
        (SECOND_TYPE + b"\x0a\x01\xff", "is no message of its schema"),
        (SECOND_TYPE + b"\x12" * 1000, "is no message of its schema"),
    ],
)
def test_malformed_messages_are_undecodable(payload: bytes, reason: str) -> None:
    found = rejection(framed(1, payload), proto_schema(order_file()))
    assert found.fault is Fault.UNDECODABLE
    assert reason in found.reason


@pytest.mark.parametrize("text", ["", "AAAA", "no base64", json.dumps({})])
def test_what_is_no_descriptor_refuses_each_message(text: str) -> None:
    found = rejection(framed(1, b"\0"), WriterSchema("PROTOBUF", text))
    assert found.fault in {Fault.INVALID, Fault.UNDECODABLE}


@examples(500)
@given(payload=st.binary(max_size=60), cut=st.integers(0, 40))
def test_no_bytes_make_anything_but_a_record_or_a_rejection(payload: bytes, cut: int) -> None:
    file = order_file()
    value = SECOND_TYPE + encoded(file)
    values: list[bytes | None] = [
        framed(1, payload), framed(1, SECOND_TYPE + payload), framed(1, value[:cut] + payload)
    ]  # fmt: skip
    found = decoders("protobuf", proto_schema(file)).interactions
    records = decode([b"c7"] * 3, values, found, 2**53)
    assert all(isinstance(record, Interaction | RejectedRecord) for record in records)


def test_features_are_read_where_the_schema_has_them() -> None:
    features = {
        "load": {"kind": "vector", "field": "/load", "length": 2},
        "express": {"kind": "boolean", "field": "/express", "missing": False},
    }
    stream = Stream.model_validate(stream_of("protobuf").model_dump(mode="json") | {"features": features})
    file = order_file()
    repeated = proto_field("load", 9, "double", label=FieldDescriptorProto.LABEL_REPEATED)
    file.message_type[1].field.append(repeated)
    compiled = InputDecoders.of(stream, Schemas(proto_schema(file))).interactions
    message = framed(1, SECOND_TYPE + encoded(file, load=[0.5, 2.0]))
    [record] = decode([b"c7"], [message], compiled, 2**53)
    assert (getattr(record, "feature_0", ""), getattr(record, "feature_1", "")) == ([0.5, 2.0], None)
    compiled = InputDecoders.of(stream, Schemas(proto_schema(order_file()))).interactions
    [rejected] = decode([b"c7"], [framed(1, SECOND_TYPE + encoded(order_file()))], compiled, 2**53)
    assert isinstance(rejected, RejectedRecord)
    assert "missing required field `load`" in rejected.reason


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (2.5, 2.5),
        (None, 0.0),  # the default of proto3, which no message tells from a weight of 0
        (-1.0, "Expected `float` >= 0.0 - at `$.worth`"),
        (math.nan, "Expected `float` >= 0.0 - at `$.worth`"),
        (math.inf, "Expected `float` <= 1000.0 - at `$.worth`"),
    ],
)
def test_a_label_s_weight_is_a_number_from_0_to_1000(weight: float | None, expected: object) -> None:
    file = order_file()
    file.message_type[1].field.append(proto_field("on_time", 8, "bool"))
    file.message_type[1].field.append(proto_field("worth", 9, "double"))
    given_stream = stream_of("protobuf").model_dump(mode="json")
    labels = {"time": "/times/at", "time_unit": "ms", "weight": "/worth"}
    stream = Stream.model_validate(given_stream | {"labels": given_stream["labels"] | labels})
    found = InputDecoders.of(stream, Schemas(proto_schema(file))).labels
    value = SECOND_TYPE + encoded(file, on_time=True, **({} if weight is None else {"worth": weight}))
    [record] = decode([b"c7"], [framed(1, value)], found, 2**53)
    if isinstance(record, RejectedRecord):
        assert record.fault is Fault.INVALID
        assert str(expected) in record.reason
    else:
        assert getattr(record, "weight", None) == expected
