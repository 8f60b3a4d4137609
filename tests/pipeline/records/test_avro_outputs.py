"""Records in Avro: the way there and back gives the same bytes, whatever the record."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from pipeline.config.stream import Stream
from pipeline.records.decoding import UnusableValueError
from pipeline.records.encoding import encode
from pipeline.records.output_types import KUAIREC_TYPES, OutputTypes
from pipeline.records.outputs import LabelRequest, Outcome, Prediction, Share
from pipeline.records.schemas import UnfitSchemaError, WriterSchema
from tests.support.examples import examples
from tests.support.record_strategies import (
    corrections,
    expired,
    labelled,
    predictions,
    requests,
    shares,
    unasked,
)

pytest.importorskip("fastavro", reason="the extra `registry` is not installed")

import fastavro

from pipeline.records.avro_outputs import AvroRecord

PREFIX = b"\0\0\0\0\1"
KINDS: dict[type[msgspec.Struct], AvroRecord] = {
    kind: AvroRecord(kind, "forks.kuairec") for kind in (Prediction, Outcome, LabelRequest, Share)
}

DEFINITION: dict[str, Any] = {
    "name": "food",
    "entities": {"courier": "/courier", "restaurant": "/from"},
    "interactions": {"topic": "orders", "event_id": "/order", "time": "/at"},
    "labels": {"topic": "arrivals", "event_id": "/order", "time": "/at", "value": "/minutes"},
    "outputs": {"format": "avro"},
    "target": {"kind": "regression", "name": "minutes", "offset": 30.0, "cap": 60.0, "scale": 10.0},
    "features": {"cuisine": {"kind": "category", "field": "/cuisine", "columns": 4}},
    "running": {"restaurant": {}, "cuisine": {}, "taste": {"of": ["restaurant", "cuisine"]}},
    "tables": {
        "places": {
            "topic": "places",
            "entity": "restaurant",
            "features": {"rating": {"kind": "number", "field": "/rating", "missing": 3.0}},
        }
    },
}
"""A definition whose outputs have about all that outputs may have."""


def there_and_back(record: AvroRecord, text: bytes) -> bytes:
    return record.decoder(record.schema)(PREFIX + record.encode(text))


@examples(120)
@given(record=predictions | requests | labelled | unasked | expired | corrections | shares)
def test_each_record_comes_back_as_the_same_bytes(record: msgspec.Struct) -> None:
    text = encode(record)
    assert there_and_back(KINDS[type(record)], text) == text


@examples(100)
@given(record=labelled | expired | corrections)
def test_any_reader_of_avro_finds_the_values_of_json(record: Outcome) -> None:
    kind = KINDS[Outcome]
    schema = fastavro.parse_schema(json.loads(kind.schema.text.replace("logicalType", "ignored")))
    found: Any = fastavro.schemaless_reader(BytesIO(kind.encode(encode(record))), schema, None)
    expected = json.loads(encode(record))
    names = [name for name in found if name != "shared"]
    assert {name: found[name] for name in names} == {name: expected.get(name) for name in names}
    for share, given_share in zip(found["shared"] or [], expected.get("shared", []), strict=True):
        assert [list(each.values()) for each in share["videos"]] == given_share["videos"]
        assert [list(each.values()) for each in share["examples"]] == given_share["examples"]


@given(value=st.binary(max_size=40))
def test_other_bytes_are_refused_or_some_record(value: bytes) -> None:
    record = KINDS[LabelRequest]
    try:
        text = record.decoder(record.schema)(PREFIX + value)
    except UnusableValueError:
        return
    assert isinstance(json.loads(text), dict)


def test_a_schema_of_another_version_is_read_by_the_rules_of_avro() -> None:
    record = KINDS[Outcome]
    schema = json.loads(record.schema.text)
    older = schema | {"fields": [each for each in schema["fields"] if each["name"] != "former"]}
    newer = schema | {"fields": [*schema["fields"], {"name": "more", "type": "string"}]}
    values = dict.fromkeys((each["name"] for each in schema["fields"]), None) | {
        "event_id": "e",
        "user_id": 7,
        "video_id": "v",
        "timestamp": 5,
        "score": 0.5,
        "predicted": True,
        "features": [0.25] * KUAIREC_TYPES.features,
        "model_version": 3,
        "prediction_sequence": 4,
        "status": "expired",
        "sequence": 3,
        "more": "than this version knows",
    }
    texts = set()
    for each in (older, newer, schema):
        file = BytesIO()
        fastavro.schemaless_writer(file, fastavro.parse_schema(json.loads(json.dumps(each))), values)
        texts.add(record.decoder(WriterSchema("AVRO", json.dumps(each)))(PREFIX + file.getvalue()))
    [text] = texts
    assert KUAIREC_TYPES.outcomes.decode(text).event_id == "e"
    assert b"former" not in text


def test_a_schema_without_a_field_that_is_needed_gives_no_record() -> None:
    record = KINDS[LabelRequest]
    schema = json.loads(record.schema.text)
    without = schema | {"fields": [each for each in schema["fields"] if each["name"] != "score"]}
    file = BytesIO()
    values = {"event_id": 1, "user_id": 2, "video_id": 3, "timestamp": 4}
    values |= {"prediction_sequence": 5, "sequence": 6}
    fastavro.schemaless_writer(file, fastavro.parse_schema(json.loads(json.dumps(without))), values)
    decode = record.decoder(WriterSchema("AVRO", json.dumps(without)))
    with pytest.raises(UnusableValueError):
        decode(PREFIX + file.getvalue())


def test_a_schema_that_contains_itself_is_refused() -> None:
    inner = {"name": "next", "type": ["null", "LabelRequest"]}
    schema = {"type": "record", "name": "LabelRequest", "fields": [inner]}
    with pytest.raises(UnfitSchemaError, match="contains itself"):
        KINDS[LabelRequest].decoder(WriterSchema("AVRO", json.dumps(schema)))


def values_of(info: inspect.Type) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - one for each kind of type
    """Return a strategy for the JSON of a type."""
    match info:
        case inspect.Metadata(type=inner):
            return values_of(inner)
        case inspect.StructType(fields=fields, array_like=True):
            return st.tuples(*(values_of(field.type) for field in fields)).map(list)
        case inspect.StructType(fields=fields):
            needed = {field.encode_name: values_of(field.type) for field in fields if field.required}
            left = {field.encode_name: values_of(field.type) for field in fields if not field.required}
            return st.fixed_dictionaries(needed, optional=left).map(
                lambda found: {
                    field.encode_name: found[field.encode_name]
                    for field in fields
                    if found.get(field.encode_name) is not None or field.required
                }
            )
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return st.lists(values_of(item), max_size=2)
        case inspect.DictType(value_type=value):
            return st.dictionaries(st.text(), values_of(value), max_size=3)
        case inspect.UnionType(types=types):
            return st.one_of(*map(values_of, types))
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
    return PLAIN[type(info)]


PLAIN: dict[type, st.SearchStrategy[Any]] = {
    inspect.BoolType: st.booleans(),
    inspect.IntType: st.integers(-(2**63), 2**63 - 1),
    inspect.FloatType: st.floats(allow_nan=False, allow_infinity=False),
    inspect.StrType: st.text(),
    inspect.NoneType: st.none(),
}
TYPES = OutputTypes.of(Stream.model_validate(DEFINITION))
SHOWN = {"items": "/shown", "item_fields": ["restaurant", "cuisine", "propensity"], "propensity": "/p"}
OF_SLATES = OutputTypes.of(
    Stream.model_validate(DEFINITION | {"interactions": {**DEFINITION["interactions"], **SHOWN}})
)
assert OF_SLATES.slates is not None


@pytest.mark.parametrize(
    "kind",
    [
        TYPES.prediction,
        TYPES.outcome,
        TYPES.label_request,
        OF_SLATES.slates.record,
        OF_SLATES.outcome,
        OF_SLATES.label_request,
    ],
)
def test_so_do_records_of_any_definition(kind: type[msgspec.Struct]) -> None:
    record = AvroRecord(kind, "forks.food")

    @examples(100)
    @given(value=values_of(inspect.type_info(kind)))
    def check(value: dict[str, Any]) -> None:
        text = encode(value)
        assert there_and_back(record, text) == text

    check()


def test_a_record_has_all_that_the_definition_names() -> None:
    schema = json.loads(AvroRecord(TYPES.outcome, "forks.food").schema.text)
    names = [each["name"] for each in schema["fields"]]
    assert names == list(TYPES.outcome.__struct_encode_fields__)
    assert {"courier", "restaurant", "minutes", "tables"} <= {*names}
    [shared] = [each["type"][1]["items"] for each in schema["fields"] if each["name"] == "shared"]
    assert "tastes" in {each["name"] for each in shared["fields"]} or len(shared["fields"]) > 5
