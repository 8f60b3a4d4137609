"""Numbers that outputs carry as interactions have them, in every format and in tables."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from jsonschema import Draft202012Validator

pytest.importorskip("fastavro", reason="needs the extra registry")
from pipeline.config.stream import CARRIED, Stream
from pipeline.records.avro_outputs import AvroRecord
from pipeline.records.decoding import Record, RejectedRecord, decode
from pipeline.records.derived_schemas import derived_schema
from pipeline.records.encoding import encode
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Interaction
from pipeline.records.output_types import OutputTypes
from pipeline.tools.export.columns import Columns
from pipeline.tools.stream.schemas import schemas_of
from tests.support.schemas import (
    ORDER,
    TIME,
    Schemas,
    avro,
    avro_schema,
    framed,
    order,
    order_class,
    order_file,
    proto_field,
    proto_schema,
    stream_of,
)

POINTERS = {name: f"/{name}" for name in CARRIED}
VALUES = (0.25, 0.0, -1.5, None)


def carrying(format_: Any) -> Stream:
    definition = stream_of(format_).model_dump(mode="json")
    return Stream.model_validate(definition | {"interactions": definition["interactions"] | POINTERS})


def in_avro(kind: Any, **numbers: Any) -> Record:
    fields = [{"name": name, "type": kind, "default": None} for name in numbers]
    schema = ORDER | {"fields": [*ORDER["fields"], *fields]}
    compiled = InputDecoders.of(carrying("avro"), Schemas(avro_schema(schema))).interactions
    [record] = decode([b"c7"], [avro(schema, order(**numbers))], compiled, 2**53)
    return record


def test_avro_has_them_or_not() -> None:
    record = in_avro(["null", "double"], **dict(zip(CARRIED, VALUES, strict=True)))
    assert isinstance(record, Interaction)
    assert record.carried == VALUES
    without = in_avro(["null", "double"])
    assert isinstance(without, Interaction)
    assert without.carried == (None,) * 4
    rejected = in_avro(["null", "double"], propensity=0.0)
    assert isinstance(rejected, RejectedRecord)
    assert "propensity" in rejected.reason


def test_protobuf_has_them_where_they_are_set() -> None:
    file = order_file()
    for number, name in enumerate(CARRIED[:2], 8):
        file.message_type[1].field.append(proto_field(name, number, "double"))
    message = order_class(file)()
    message.order, message.courier.id = "o1", "c7"
    setattr(message, "from", 3)
    message.times.at.FromMilliseconds(TIME)
    message.propensity, message.target_propensity = 0.25, 1.0
    compiled = InputDecoders.of(carrying("protobuf"), Schemas(proto_schema(file))).interactions
    [record] = decode([b"c7"], [framed(1, b"\x02\x02" + message.SerializeToString())], compiled, 2**53)
    assert isinstance(record, Interaction)
    assert record.carried == (0.25, 1.0, None, None)


def test_a_schema_that_is_derived_has_them_as_fields_that_may_be_missing() -> None:
    stream = carrying("avro")
    fields = json.loads(derived_schema(stream, stream.interactions).text)["fields"]
    found = {each["name"]: each for each in fields if each["name"] in CARRIED}
    assert [*found] == [*CARRIED]
    assert all(each["type"] == ["null", "double"] for each in found.values())


def outcome(**changes: Any) -> Any:
    """An outcome as a dictionary."""
    stream = carrying("json")
    length = OutputTypes.of(stream).features
    return {
        "event_id": "o1",
        **dict.fromkeys(stream.entities, "c7"),
        "timestamp": 5,
        "score": 0.5,
        "probability": 0.6,
        "predicted": True,
        "features": [0.5] * length,
        **dict(zip(CARRIED, VALUES, strict=True)),
        "model_version": 3,
        "prediction_sequence": 4,
        stream.target.name: 1.0,
        "label": True,
        "label_timestamp": 9,
        "correct": True,
        "loss": 0.5,
        "status": "labelled",
        "sequence": 3,
    } | changes


def test_outcomes_in_avro_come_back_as_the_same_bytes() -> None:
    types = OutputTypes.of(carrying("json"))
    text = encode(outcome())
    assert encode(types.outcomes.decode(text)) == text
    record = AvroRecord(types.outcome, "forks.food")
    assert record.decoder(record.schema)(b"\0" * 5 + record.encode(text)) == text


def test_schemas_describe_them() -> None:
    schema = schemas_of(carrying("json"))["outcome"]
    assert all(schema["properties"][name]["description"] for name in CARRIED)
    assert {*CARRIED} <= {*schema["required"]}
    validator = Draft202012Validator(schema)
    assert validator.is_valid(outcome())
    assert not validator.is_valid(outcome(propensity="0.5"))


def test_tables_have_a_column_of_each() -> None:
    stream = carrying("json")
    columns = Columns(stream, "effects", "outcomes")
    frame = columns.frame([7], [OutputTypes.of(stream).outcomes.decode(encode(outcome()))])
    assert frame.select(CARRIED).rows() == [VALUES]
    assert frame.schema["propensity"] == pl.Float64
