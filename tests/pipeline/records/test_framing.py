"""Messages wait for their schemas, and the schemas that are kept are bounded."""

from __future__ import annotations

import pytest

from pipeline.config.stream import KUAIREC
from pipeline.records.decoding import RejectedRecord, decode
from pipeline.records.encoding import encode
from pipeline.records.framing import MAX_SCHEMAS
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Interaction
from pipeline.records.names import Fault
from pipeline.records.schemas import SchemaUnavailableError, WriterSchema
from tests.pipeline.records.test_input_decoders import order as json_order
from tests.support.schemas import ORDER, Schemas, avro, avro_schema, decoders, framed, order, stream_of


def schemas_of(count: int) -> Schemas:
    return Schemas(*(avro_schema({**ORDER, "name": f"Order{number}"}) for number in range(count)))


def test_json_needs_no_schemas() -> None:
    assert InputDecoders.of(KUAIREC).interactions.ready is None
    with pytest.raises(ValueError, match="need a source of schemas"):
        InputDecoders.of(stream_of("avro"))


def test_messages_are_ready_up_to_the_first_whose_schema_is_not_known_yet() -> None:
    schemas = schemas_of(2)
    found = InputDecoders.of(stream_of("avro"), schemas).interactions
    values = [None, b"nonsense", avro(ORDER, order(), 1), avro(ORDER, order(), 1), avro(ORDER, order(), 2)]
    assert found.ready is not None
    schemas.away = True
    assert found.ready(values) == 2
    schemas.away = False
    assert found.ready(values[:4]) == 4
    schemas.away = True
    assert found.ready(values) == 4
    assert found.ready([]) == 0
    assert isinstance(decode([b"c7"], values[3:4], found, 2**53)[0], Interaction)
    with pytest.raises(SchemaUnavailableError):
        decode([b"c7"], values[4:], found, 2**53)


def test_a_message_of_no_known_schema_is_ready_to_be_refused() -> None:
    found = decoders("avro").interactions
    assert found.ready is not None
    assert found.ready([avro(ORDER, order(), 5), b"\0\xff\xff\xff\xff"]) == 2


def test_the_schemas_that_were_used_last_are_kept() -> None:
    schemas = schemas_of(MAX_SCHEMAS + 50)
    found = InputDecoders.of(stream_of("avro"), schemas).interactions
    assert found.ready is not None
    values = [avro(ORDER, order(), number) for number in range(1, MAX_SCHEMAS + 51)]
    # Each has a schema of its own: not more are ready than are kept at once.
    assert found.ready(values) == MAX_SCHEMAS // 2
    for value in values:
        assert found.ready([values[0], value]) == 2
        assert isinstance(found.decode(value), Interaction)
    asked = schemas.asked
    assert asked == MAX_SCHEMAS + 50
    found.decode(values[0])
    assert schemas.asked == asked
    found.decode(values[1])
    assert schemas.asked == asked + 1


def test_json_schema_is_json_behind_the_id_of_a_schema() -> None:
    schema = WriterSchema("JSON", '{"type": "object"}')
    found = decoders("json-schema", schema, avro_schema(ORDER)).interactions
    good = encode(json_order())
    values: list[bytes | None] = [
        framed(1, good),
        framed(2, good),
        framed(3, good),
        good,
        framed(1, good[:-3]),
    ]
    values.append(framed(1, good.replace(b'"o1"', b'"o\\ud800"')))
    values.append(framed(1, good.replace(b'{"order"', b'{"title":"\\ud800","order"')))
    values.append(framed(1, encode(json_order(courier={"id": 1.5}))))
    records = decode([b"c7"] * len(values), values, found, 2**53)
    faults = [record.fault if isinstance(record, RejectedRecord) else None for record in records]
    bad = Fault.UNDECODABLE
    assert faults == [None, Fault.INVALID, bad, bad, bad, bad, None, Fault.INVALID]
    reasons = [record.reason for record in records if isinstance(record, RejectedRecord)]
    assert reasons[0] == "schema 2: it is of AVRO, and the input's format is json-schema"
    assert reasons[1] == "schema 3 is not in the registry"
    assert "not with the magic byte 0" in reasons[2]
    assert "the value is not a JSON object" in reasons[3]
    assert "event_id has half a surrogate pair" in reasons[4]
    assert "at `$.courier.id`" in reasons[5]


def test_the_fields_are_given_as_objects_for_whoever_looks_at_them() -> None:
    found = decoders("avro", avro_schema(ORDER)).interactions
    assert found.parse(avro(ORDER, order())) == {
        "order": "o1", "courier": {"id": "c7"}, "from": 3, "times": {"at": order()["times"]["at"]}
    }  # fmt: skip
