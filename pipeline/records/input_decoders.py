"""Decoders of a stream's inputs, compiled from its definition.

Where all fields stand at the top of a message and times are milliseconds, a message is parsed into its record
at once. Otherwise it is parsed into an object of its own shape, of which the record is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from operator import attrgetter
from typing import Annotated, Any, Final, NamedTuple, Self, TypeAlias, TypeVar, cast

import msgspec

from pipeline.config.stream import InputDefinition, LabelDefinition, Stream, TimeUnit, parts_of
from pipeline.records.decoding import InputDecoder
from pipeline.records.fields import Duration, Id, Timestamp, WatchRatio
from pipeline.records.framing import FramedDecoder
from pipeline.records.inputs import Interaction, Label
from pipeline.records.schemas import SchemaSource, WantedField

AnyRecord = TypeVar("AnyRecord", Interaction, Label)

_MAX_TIME: Final = 2**53
"""The largest timestamp, in milliseconds: see `pipeline.records.fields.Timestamp`."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES: Final[Mapping[TimeUnit, Any]] = {
    "ms": Timestamp,
    "us": Annotated[int, msgspec.Meta(ge=0, le=_MAX_TIME * 1000)],
    "s": Annotated[float, msgspec.Meta(ge=0, le=_MAX_TIME / 1000)],
    "iso8601": Annotated[datetime, msgspec.Meta(tz=True)],
}
"""Types of times in messages."""


class _LabelRecord(Label, frozen=True, gc=False):
    watch_ratio: WatchRatio


class _Field(NamedTuple):
    """A field of a message."""

    name: str
    """Its name in the record."""
    parts: tuple[str, ...]
    """Where it is in the message."""
    type: Any


_Tree: TypeAlias = "dict[str, _Field | _Tree]"
"""Fields by where they are in a message."""


class InputDecoders(NamedTuple):
    """The decoders of both inputs.

    Examples
    --------
    >>> from pipeline.config.stream import KUAIREC
    >>> decoders = InputDecoders.of(KUAIREC)
    >>> text = b'{"event_id":1,"user_id":7,"video_id":3,"timestamp":5,"video_duration":900}'
    >>> decoders.interactions.decode(text).timestamp
    5
    """

    interactions: InputDecoder[Interaction]
    labels: InputDecoder[Label]

    @classmethod
    def of(cls, stream: Stream, schemas: SchemaSource | None = None) -> Self:
        """Return the decoders of a stream; those of JSON are compiled once.

        Parameters
        ----------
        stream
            Definition of the stream.
        schemas
            Knows the schemas of inputs that are not plain JSON; None where there are none.
        """
        interactions, labels = _compiled(stream.model_dump_json())
        if not stream.needs_registry:
            return cls(interactions, labels)
        if schemas is None:
            raise ValueError("inputs that are not plain JSON need a source of schemas")
        return cls(
            _framed(Interaction, stream, stream.interactions, interactions, schemas),
            _framed(_LabelRecord, stream, stream.labels, labels, schemas),
        )


@lru_cache
def _compiled(definition: str) -> tuple[InputDecoder[Interaction], InputDecoder[Label]]:
    """Compile the decoders of a stream, given its definition as JSON."""
    stream = Stream.model_validate_json(definition)
    user = next(iter(stream.entities.values()))
    key_field = ".".join(parts_of(user))
    interaction = _decoder(Interaction, _fields(stream, stream.interactions), stream.interactions)
    label = _decoder(_LabelRecord, _fields(stream, stream.labels), stream.labels)
    return InputDecoder(interaction, key_field), InputDecoder(label, key_field)


def _framed(
    record: type[AnyRecord],
    stream: Stream,
    definition: InputDefinition,
    of_json: InputDecoder[AnyRecord],
    schemas: SchemaSource,
) -> InputDecoder[AnyRecord]:
    """Return the decoder of an input, given that of its fields in JSON."""
    if definition.format == "json":
        return of_json
    fields = _fields(stream, definition)
    wanted = [
        WantedField(
            field.parts, _kinds(field.type), definition.time_unit if field.name == "timestamp" else None
        )
        for field in fields
    ]

    def record_of(time_unit: TimeUnit | None) -> Callable[[Any], AnyRecord]:
        """Return what makes a record of objects, times in this unit."""
        own = definition.model_copy(update={"time_unit": time_unit or definition.time_unit})
        return _decoder(record, _fields(stream, own), own, _from_objects)

    decoder = FramedDecoder(definition.format, schemas, wanted, record_of, of_json.decode)
    return InputDecoder(decoder.decode, of_json.key_field, decoder.parse, decoder.ready)


def _kinds(type_: Any) -> frozenset[type]:
    """Return the kinds of scalars that a type accepts."""
    info = msgspec.inspect.type_info(type_)
    if isinstance(info, msgspec.inspect.UnionType):
        return frozenset(_KINDS[type(each)] for each in info.types)
    return frozenset({_KINDS[type(info)]})


_KINDS: Final[Mapping[type, type]] = {
    msgspec.inspect.BoolType: bool,
    msgspec.inspect.DateTimeType: str,
    msgspec.inspect.FloatType: float,
    msgspec.inspect.IntType: int,
    msgspec.inspect.StrType: str,
}


def event_id_decoder(definition: InputDefinition) -> Callable[[bytes], Id]:
    """Return what finds the event's id in a message, whatever else is in it.

    Examples
    --------
    >>> from pipeline.config.stream import KUAIREC
    >>> event_id_decoder(KUAIREC.labels)(b'{"event_id":"e1","surplus":5}')
    'e1'
    """
    field = _Field("event_id", parts_of(definition.event_id), Id)
    parse = msgspec.json.Decoder(_shape(_tree([field]))).decode
    event_id = attrgetter(_path([field], field))
    return lambda value: cast(Id, event_id(parse(value)))


def _fields(stream: Stream, definition: InputDefinition) -> list[_Field]:
    """Return the fields of an input, in the order in which what is wrong with one is looked for."""
    user, item = stream.entities.values()
    fields = [
        _Field("event_id", parts_of(definition.event_id), Id),
        _Field("user_id", parts_of(user), Id),
        _Field("video_id", parts_of(item), Id),
        _Field("timestamp", parts_of(definition.time), _TIMES[definition.time_unit]),
        *(
            _Field(f"number_{name}", parts_of(pointer), Duration)
            for name, pointer in definition.numbers.items()
        ),
    ]
    if isinstance(definition, LabelDefinition):
        kind = bool if definition.value_kind == "boolean" else WatchRatio
        fields.append(_Field("watch_ratio", parts_of(definition.value), kind))
    return fields


def _from_json(shape: type[Any]) -> Callable[[Any], Any]:
    return msgspec.json.Decoder(shape).decode


def _from_objects(shape: type[Any]) -> Callable[[Any], Any]:
    return partial(msgspec.convert, type=shape)


def _decoder(
    record: type[Any],
    fields: list[_Field],
    definition: InputDefinition,
    to_shape: Callable[[type[Any]], Callable[[Any], Any]] = _from_json,
) -> Callable[[Any], Any]:
    """Return what decodes a value to a record of this type, or of one derived from it.

    `to_shape` returns what makes an object of a type of what is decoded: JSON, or objects and scalars.
    """
    boolean = isinstance(definition, LabelDefinition) and definition.value_kind == "boolean"
    if definition.time_unit == "ms" and not boolean and all(len(field.parts) == 1 for field in fields):
        renamed = {field.name: field.parts[0] for field in fields}
        base = Label if issubclass(record, Label) else Interaction
        flat = msgspec.defstruct(
            record.__name__,
            [(field.name, field.type) for field in fields],
            bases=(base,),
            rename=renamed,
            frozen=True,
            gc=False,
        )
        return to_shape(flat)
    parse = to_shape(_shape(_tree(fields)))
    wanted = [field for field in fields if field.name in record.__struct_fields__]
    values = attrgetter(*(_path(fields, field) for field in wanted))
    at = [field.name for field in wanted].index("timestamp")
    convert = _CONVERSIONS[definition.time_unit]

    def decode(value: Any) -> Any:
        found = list(values(parse(value)))
        found[at] = convert(found[at])
        if boolean:
            found[-1] = float(found[-1])
        return record(*found)

    return decode


def _tree(fields: Iterable[_Field]) -> _Tree:
    tree: _Tree = {}
    for field in fields:
        inner = tree
        for part in field.parts[:-1]:
            inner = cast(_Tree, inner.setdefault(part, {}))
        inner[field.parts[-1]] = field
    return tree


def _shape(tree: _Tree) -> type[msgspec.Struct]:
    """Return the type of an object with these fields, which are called f0, f1 and so on."""
    types = [entry.type if isinstance(entry, _Field) else _shape(entry) for entry in tree.values()]
    names = [f"f{number}" for number in range(len(tree))]
    rename = dict(zip(names, tree, strict=True))
    return msgspec.defstruct(
        "Message", list(zip(names, types, strict=True)), rename=rename, frozen=True, gc=False
    )


def _path(fields: Iterable[_Field], field: _Field) -> str:
    """Return where a field is in the shape of all fields."""
    path, inner = [], _tree(fields)
    for part in field.parts:
        path.append(f"f{list(inner).index(part)}")
        inner = cast(_Tree, inner[part])
    return ".".join(path)


def _of_datetime(time: datetime) -> int:
    milliseconds = (time - _EPOCH) // timedelta(milliseconds=1)
    if milliseconds < 0:
        raise msgspec.ValidationError(f"Expected a time from 1970 on, got {time.isoformat()}")
    return milliseconds


_CONVERSIONS: Final[Mapping[TimeUnit, Callable[[Any], int]]] = {
    "ms": int,
    "us": lambda time: time // 1000,
    "s": lambda time: round(time * 1000),
    "iso8601": _of_datetime,
}
"""Functions from times in messages to milliseconds."""
