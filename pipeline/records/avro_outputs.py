"""Convert records of the outputs from JSON to Avro and back, to the same bytes.

Inside this program such a record is its JSON text. The schema follows from the record's type, and so does
the way back: fields in the order of the type, and none where a field that need not be written is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import inspect

from pipeline.records import avro
from pipeline.records.encoding import encode
from pipeline.records.fields import AVRO_LOGICAL
from pipeline.records.schemas import WriterSchema

_Convert: TypeAlias = "Callable[[Any], Any] | None"
"""Converts a value; None where it stays as it is."""
_PLAIN: Final[Mapping[type, str]] = MappingProxyType(
    {
        inspect.BoolType: "boolean",
        inspect.IntType: "long",
        inspect.FloatType: "double",
        inspect.StrType: "string",
        inspect.LiteralType: "string",
        inspect.NoneType: "null",
    }
)


class _Kind(NamedTuple):
    """What becomes of a type."""

    schema: Any
    to_avro: _Convert = None
    """From what JSON has to what Avro has."""
    from_avro: _Convert = None


class AvroRecord:
    r"""The Avro of a type of records.

    Parameters
    ----------
    record
        The type: a struct of booleans, whole numbers, numbers, texts, lists and other structs.
    namespace
        Of the names in the schema.

    Examples
    --------
    >>> from pipeline.records.outputs import LabelRequest
    >>> record = AvroRecord(LabelRequest, "forks.kuairec")
    >>> text = encode(LabelRequest("e", 7, 3, 5, 0.5, prediction_sequence=9, sequence=4))
    >>> record.encode(text).hex(" ")
    '02 02 65 00 0e 00 06 0a 00 00 00 00 00 00 e0 3f 12 08'
    >>> record.decoder(record.schema)(b"\0" * 5 + record.encode(text)) == text
    True
    """

    def __init__(self, record: type[msgspec.Struct], namespace: str) -> None:
        from fastavro import parse_schema  # noqa: PLC0415 - of the extra `registry`

        kind = _Types(namespace).kind_of(inspect.type_info(record))
        self.schema: Final = WriterSchema("AVRO", encode(kind.schema).decode())
        self._parsed = parse_schema(kind.schema)
        self._to_avro = kind.to_avro or (lambda value: value)
        self._from_avro = kind.from_avro or (lambda value: value)

    def encode(self, text: bytes) -> bytes:
        """Return a record in Avro, without a prefix, given its JSON."""
        from fastavro import schemaless_writer  # noqa: PLC0415 - of the extra `registry`

        file = BytesIO()
        schemaless_writer(file, self._parsed, self._to_avro(msgspec.json.decode(text)))
        return file.getvalue()

    def decoder(self, writer: WriterSchema) -> Callable[[bytes], bytes]:
        """Return what makes JSON of values that were written with a schema, of this version or another.

        It raises `UnusableValueError` for bytes that are none of the schema.

        Raises
        ------
        UnfitSchemaError
            The schema is refused.
        """
        from_avro, parse = self._from_avro, avro.whole_values(writer, self.schema)

        def decode(value: bytes) -> bytes:
            return encode(from_avro(parse(value)))

        return decode


class _Types:
    """Finds what becomes of types; each record has its schema where it comes first."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._named: dict[type, _Kind] = {}

    def kind_of(self, info: inspect.Type) -> _Kind:  # noqa: PLR0911 - one for each kind of type
        """Return what becomes of a type."""
        match info:
            case inspect.Metadata(type=inner, extra=extra):
                kind = self.kind_of(inner)
                logical = (extra or {}).get(AVRO_LOGICAL)
                return kind if logical is None else _Kind({"type": kind.schema, "logicalType": logical})
            case inspect.StructType(cls=cls):
                if cls not in self._named:
                    kind = self._struct(info)
                    self._named[cls] = kind._replace(schema=f"{self._namespace}.{cls.__name__}")
                    return kind
                return self._named[cls]
            case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
                inner_kind = self.kind_of(item)
                convert = [_each(each) for each in (inner_kind.to_avro, inner_kind.from_avro)]
                return _Kind({"type": "array", "items": inner_kind.schema}, *convert)
            case inspect.DictType(value_type=value):
                return _Kind({"type": "map", "values": self.kind_of(value).schema})
            case inspect.UnionType(types=types):
                kinds = [self.kind_of(each) for each in types]
                kinds.sort(key=lambda kind: kind.schema != "null")
                converted = [_or_null(kind) for kind in kinds if kind.to_avro or kind.from_avro]
                to_avro, from_avro = converted[0] if converted else (None, None)
                return _Kind([kind.schema for kind in kinds], to_avro, from_avro)
        return _Kind(_PLAIN[type(info)])

    def _struct(self, info: inspect.StructType) -> _Kind:
        kinds = {field.encode_name: self.kind_of(field.type) for field in info.fields}
        optional = tuple(field.encode_name for field in info.fields if not field.required)
        schema = {
            "type": "record",
            "name": info.cls.__name__,
            "namespace": self._namespace,
            "fields": [
                {"name": name, "type": kind.schema} | ({"default": None} if name in optional else {})
                for name, kind in kinds.items()
            ],
        }
        to_avro = {name: kind.to_avro for name, kind in kinds.items() if kind.to_avro is not None}
        from_avro = {name: kind.from_avro for name, kind in kinds.items() if kind.from_avro is not None}
        if info.array_like:
            return _Kind(schema, _from_list(list(kinds), to_avro), _to_list(list(kinds), from_avro))
        return _Kind(schema, _fields(to_avro), _fields(from_avro, optional))


def _each(convert: _Convert) -> _Convert:
    return None if convert is None else lambda values: list(map(convert, values))


def _or_null(kind: _Kind) -> tuple[_Convert, _Convert]:
    def or_null(convert: _Convert) -> _Convert:
        return None if convert is None else lambda value: None if value is None else convert(value)

    return or_null(kind.to_avro), or_null(kind.from_avro)


def _fields(conversions: Mapping[str, Callable[[Any], Any]], optional: tuple[str, ...] = ()) -> _Convert:
    """Return what converts fields of a dictionary, and takes away those that are null and may be missing."""
    if not conversions and not optional:
        return None

    def convert(record: dict[str, Any]) -> dict[str, Any]:
        for name in optional:
            if record[name] is None:
                del record[name]
        for name, of_field in conversions.items():
            if name in record:
                record[name] = of_field(record[name])
        return record

    return convert


def _from_list(names: list[str], conversions: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return what makes a dictionary of a record that JSON has as a list."""
    of_fields = _fields(conversions) or (lambda record: record)
    return lambda values: of_fields(dict(zip(names, values, strict=True)))


def _to_list(names: list[str], conversions: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    of_fields = _fields(conversions) or (lambda record: record)

    def convert(record: dict[str, Any]) -> list[Any]:
        converted = of_fields(record)
        return [converted[name] for name in names]

    return convert
