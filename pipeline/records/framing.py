"""Decode messages in the wire format of Confluent's serializers: magic byte, schema id, and the value itself.

What is made of a schema is kept, so that it costs once what a schema costs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple

import msgspec

from pipeline.config.stream import Format, TimeUnit
from pipeline.records import avro, protobuf
from pipeline.records.decoding import AnyRecord_co, UnusableValueError
from pipeline.records.nesting import shallow
from pipeline.records.schemas import (
    MAX_SCHEMA_SIZE,
    PREFIX,
    SchemaSource,
    SchemaUnavailableError,
    UnfitSchemaError,
    Wanted,
    WriterSchema,
)

MAX_SCHEMAS: Final = 200
"""Schemas that are kept ready, at most; those that were used last."""
LARGEST_ID: Final = 2**31 - 1
"""The largest schema id: registries count in 32 bits, with a sign."""
_KINDS: Final[dict[Format, str]] = {"avro": "AVRO", "protobuf": "PROTOBUF", "json-schema": "JSON"}


class _Ready(NamedTuple):
    """What is made of a schema."""

    parse: Callable[[bytes], object]
    decode: Callable[[bytes], Any]


class FramedDecoder(Generic[AnyRecord_co]):
    """Decodes messages that begin with the id of their schema.

    Parameters
    ----------
    format_
        How the messages are written, not ``json``.
    schemas
        Knows the schemas.
    fields
        What is read of a message.
    record_of
        Returns what makes a record of these fields, given the unit of times where the schema says one.
    record_of_json
        Makes a record of JSON.
    """

    def __init__(
        self,
        format_: Format,
        schemas: SchemaSource,
        fields: list[Wanted],
        record_of: Callable[[TimeUnit | None], Callable[[Any], AnyRecord_co]],
        record_of_json: Callable[[Any], AnyRecord_co],
    ) -> None:
        self._format = format_
        self._schemas = schemas
        self._fields = fields
        self._record_of = record_of
        self._record_of_json = record_of_json
        self._ready: OrderedDict[bytes, _Ready] = OrderedDict()

    def decode(self, value: bytes) -> AnyRecord_co:
        """Return the record of a message: see `pipeline.records.decoding.decode_value`."""
        ready = self._ready.get(value[:PREFIX]) or self._prepare(value[:PREFIX])
        record: AnyRecord_co = ready.decode(value)
        return record

    def parse(self, value: bytes) -> object:
        """Return the fields of a message, with the errors of `decode`."""
        ready = self._ready.get(value[:PREFIX]) or self._prepare(value[:PREFIX])
        return ready.parse(value)

    def ready(self, values: Sequence[bytes | None]) -> int:
        """Return how many of the first values can be decoded without waiting for their schemas."""
        prefixes = dict.fromkeys([value[:PREFIX] for value in values if value is not None])
        for count, prefix in enumerate(prefixes):
            try:
                self._prepare(prefix)
            except UnusableValueError:  # this is known then, too
                continue
            except SchemaUnavailableError:
                return _first_of(prefix, values)
            if count == MAX_SCHEMAS // 2:  # so that all of them are kept until they are used
                return _first_of(prefix, values)
        return len(values)

    def _prepare(self, prefix: bytes) -> _Ready:
        """Return what decodes the messages that begin so, which is then the last used."""
        if prefix in self._ready:
            self._ready.move_to_end(prefix)
            return self._ready[prefix]
        schema_id = id_in(prefix)
        ready = self._made(schema_id, self._schemas.get(schema_id))
        self._ready[prefix] = ready
        if len(self._ready) > MAX_SCHEMAS:
            self._ready.popitem(last=False)
        return ready

    def _made(self, schema_id: int, schema: WriterSchema) -> _Ready:
        try:
            return self._decoder_of(schema)
        except UnfitSchemaError as error:
            return _refusing(f"schema {schema_id}: {error}")

    def _decoder_of(self, schema: WriterSchema) -> _Ready:
        if schema.refusal is not None:
            raise UnfitSchemaError(schema.refusal)
        if schema.kind != _KINDS[self._format]:
            raise UnfitSchemaError(f"it is of {schema.kind}, and the input's format is {self._format}")
        if schema.size > MAX_SCHEMA_SIZE:
            raise UnfitSchemaError(f"it has more than {MAX_SCHEMA_SIZE:,} characters")
        if self._format == "json-schema":
            return _Ready(
                lambda value: msgspec.json.decode(shallow(value[PREFIX:])),
                lambda value: self._record_of_json(shallow(value[PREFIX:])),
            )
        parsed_by = avro.parsed_by if self._format == "avro" else protobuf.parsed_by
        parse, time_unit = parsed_by(schema, self._fields)
        record_of = self._record_of(time_unit)
        return _Ready(parse, lambda value: record_of(parse(value)))


def _refusing(reason: str) -> _Ready:
    def refuse(_: bytes) -> Any:
        raise msgspec.ValidationError(reason)

    return _Ready(refuse, refuse)


def _first_of(prefix: bytes, values: Sequence[bytes | None]) -> int:
    return next(number for number, value in enumerate(values) if (value or b"")[:PREFIX] == prefix)


def id_in(prefix: bytes) -> int:
    r"""Return the schema id in the first bytes of a message.

    Raises
    ------
    UnusableValueError
        There is none.

    Examples
    --------
    >>> id_in(b"\0\0\0\1\2")
    258
    """
    if len(prefix) < PREFIX or prefix[0] != 0:
        raise UnusableValueError(
            f"the value begins with {prefix!r}, not with the magic byte 0 and the four bytes of a schema's id"
        )
    schema_id = int.from_bytes(prefix[1:])
    if schema_id > LARGEST_ID:
        raise UnusableValueError(f"the value names schema {schema_id}, and no id is above {LARGEST_ID}")
    return schema_id
