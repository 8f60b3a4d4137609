"""Decoders of a stream's inputs, compiled from its definition.

Where all fields stand at the top of a message and times are milliseconds, a message is parsed into its record
at once. Otherwise it is parsed into an object of its own shape, of which the record is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from pipeline.config.pointer import nested, parts_of
from pipeline.config.stream import (
    CARRIED,
    InputDefinition,
    InteractionDefinition,
    LabelDefinition,
    Stream,
    TimeUnit,
)
from pipeline.config.stream_features import (
    MAX_NUMBER,
    BooleanFeature,
    CategoryFeature,
    DerivedFeature,
    EventFeature,
    FieldFeature,
    LiveTable,
    TextFeature,
    VectorFeature,
)
from pipeline.config.target_settings import RegressionSettings
from pipeline.records.decoding import InputDecoder
from pipeline.records.entities import entity_fields, tuple_getter
from pipeline.records.fields import (
    Duration,
    Id,
    LabelValue,
    LabelWeight,
    Propensity,
    TargetPropensity,
    WatchRatio,
)
from pipeline.records.framing import FramedDecoder
from pipeline.records.input_times import TIME_OF_DAY, TIME_TYPES, time_reader, times_reader
from pipeline.records.inputs import Interaction, Label, Slate, feature_field
from pipeline.records.schemas import SchemaSource, Wanted, WantedField, WantedItems

_Number: TypeAlias = Annotated[float, msgspec.Meta(ge=-MAX_NUMBER, le=MAX_NUMBER)]
AnyRecord = TypeVar("AnyRecord", Interaction, Label)


class _Field(NamedTuple):
    """A field of a message."""

    name: str
    """Its name in the record."""
    parts: tuple[str, ...]
    """Where it is in the message."""
    type: Any
    optional: bool = False
    """Whether it is None where the message has no such field."""
    of_item: bool = False
    """Whether its place begins in an item of a slate."""


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

    @staticmethod
    def of(stream: Stream, schemas: SchemaSource | None = None) -> InputDecoders:
        """Return the decoders of a stream; those of JSON are compiled once.

        Parameters
        ----------
        stream
            Definition of the stream.
        schemas
            Knows the schemas of inputs that are not plain JSON; None where there are none.
        """
        key = stream.model_dump_json()
        if key not in _compiled:
            _compiled[key] = InputDecoders(
                _input_decoder(stream, stream.interactions, Interaction),
                _input_decoder(stream, stream.labels, Label),
            )
        if not stream.needs_registry:
            return _compiled[key]
        if schemas is None:
            raise ValueError("formats other than plain JSON need a source of schemas")
        interactions, labels = _compiled[key]
        return InputDecoders(
            _framed(Interaction, stream, stream.interactions, interactions, schemas),
            _framed(Label, stream, stream.labels, labels, schemas),
        )


_compiled: Final[dict[str, InputDecoders]] = {}


def _input_decoder(
    stream: Stream, definition: InputDefinition, record: type[AnyRecord]
) -> InputDecoder[AnyRecord]:
    key, ids = stream.key_entity, entity_fields(len(stream.entities))
    fields = _fields(stream, definition)
    flat: type[AnyRecord] | None = None
    if stream.has_slates and definition is stream.interactions:
        decode: Callable[[Any], Any] = slate_decoder(fields, ids, stream.interactions)
    elif _is_flat(fields, definition):
        flat = _flat_record(record, fields, ids)
        decode = msgspec.json.Decoder(flat).decode
    else:
        decode = _decoder(record, fields, ids, definition)
    [*pointers] = stream.entities.values()
    key_name, pointer = ("event_id", definition.event_id) if key is None else (ids[key], pointers[key])
    return InputDecoder(decode, attrgetter(key_name), ".".join(parts_of(pointer)), record=flat)


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
    ids = entity_fields(len(stream.entities))

    def record_of(time_unit: TimeUnit | None) -> Callable[[Any], AnyRecord]:
        """Return what makes a record of objects, times in this unit."""
        own = definition if time_unit is None else definition.with_time_unit(time_unit)
        fields = _fields(stream, own)
        if stream.has_slates and isinstance(own, InteractionDefinition):
            return slate_decoder(fields, ids, own, _from_objects)
        return _decoder(record, fields, ids, own, _from_objects)

    decoder = FramedDecoder(
        definition.format, schemas, wanted_fields(stream, definition), record_of, of_json.decode
    )
    return InputDecoder(decoder.decode, of_json.key_of, of_json.key_field, decoder.parse, decoder.ready)


def wanted_fields(stream: Stream, definition: InputDefinition) -> list[Wanted]:
    """Return what a schema of an input's messages has to have."""
    fields = _fields(stream, definition)
    wanted: list[Wanted] = [
        _wanted(field, definition.time_unit if field.name == "timestamp" else None)
        for field in fields
        if not field.of_item
    ]
    if isinstance(definition, InteractionDefinition) and definition.items is not None:
        own = tuple(_wanted(field, None) for field in fields if field.of_item)
        wanted.append(WantedItems(parts_of(definition.items), own, definition.max_items))
    return wanted


def _wanted(field: _Field, time_unit: TimeUnit | None) -> WantedField:
    """Return what a schema has to have for a field."""
    info = msgspec.inspect.type_info(field.type)
    if isinstance(info, msgspec.inspect.Metadata):
        info = info.type
    types = list(info.types) if isinstance(info, msgspec.inspect.UnionType) else [info]
    repeated = any(isinstance(each, msgspec.inspect.ListType) for each in types)
    items = [each.item_type if isinstance(each, msgspec.inspect.ListType) else each for each in types]
    kinds = {_KINDS[type(each)] for each in items if not isinstance(each, msgspec.inspect.NoneType)}
    return WantedField(field.parts, frozenset(kinds), time_unit, field.optional, repeated)


_KINDS: Final[Mapping[type, type]] = {
    msgspec.inspect.BoolType: bool,
    msgspec.inspect.FloatType: float,
    msgspec.inspect.IntType: int,
    msgspec.inspect.LiteralType: str,
    msgspec.inspect.StrType: str,
}


def interaction_fields(stream: Stream) -> list[_Field]:
    """Return the fields of a stream's interactions: their names in records, where they are, their types."""
    return _fields(stream, stream.interactions)


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


def table_value_decoder(table: LiveTable) -> Callable[[bytes], tuple[Any, ...]]:
    """Return what decodes the value of a table's record.

    It returns the id that the value names, its time in milliseconds and the fields of its features; an id or
    a time that the definition does not name is None. Errors are those of `decode_value`.

    Examples
    --------
    >>> price = {"kind": "number", "field": "/price"}
    >>> table = LiveTable(topic="items", entity="item", time="/at", features={"price": price})
    >>> table_value_decoder(table)(b'{"price":3.5,"at":7}')
    (None, 7, 3.5)
    """
    fields = []
    if table.id is not None:
        fields.append(_Field("id", parts_of(table.id), Id))
    if table.time is not None:
        fields.append(_Field("timestamp", parts_of(table.time), TIME_TYPES[table.time_unit]))
    fields += [_feature_field(number, each) for number, each in enumerate(table.features.values())]
    parse = msgspec.json.Decoder(_shape(_tree(fields))).decode
    values = tuple_getter([_path(fields, field) for field in fields])
    convert = None if table.time is None else time_reader(table, table.time)

    def decode(value: bytes) -> tuple[Any, ...]:
        found = iter(values(parse(value)))
        own = None if table.id is None else next(found)
        return own, None if convert is None else convert(next(found)), *found

    return decode


def _feature_field(number: int, feature: FieldFeature, *, of_item: bool = False) -> _Field:
    """Return the field of a feature of this number."""
    optional, kind = feature.missing is not None, _type_of(feature)
    kind = kind | None if optional else kind
    return _Field(feature_field(number), parts_of(feature.field), kind, optional, of_item)


def _fields(stream: Stream, definition: InputDefinition) -> list[_Field]:
    """Return the fields of an input, in the order in which what is wrong with one is looked for."""
    in_items = definition.item_fields if isinstance(definition, InteractionDefinition) else ()
    fields = [
        _Field("event_id", parts_of(definition.event_id), Id),
        *(
            _Field(f"entity_{number}", parts_of(pointer), Id, of_item=name in in_items)
            for number, (name, pointer) in enumerate(stream.entities.items())
        ),
        _Field("timestamp", parts_of(definition.time), TIME_TYPES[definition.time_unit]),
        *(_Field("time_of_day", parts_of(each), TIME_OF_DAY) for each in [definition.time_of_day] if each),
        *(
            _Field(f"number_{name}", parts_of(pointer), Duration, of_item=name in in_items)
            for name, pointer in definition.numbers.items()
        ),
    ]
    if isinstance(definition, LabelDefinition):
        if definition.weight is not None:
            fields.append(_Field("weight", parts_of(definition.weight), LabelWeight))
        return [*fields, _Field("watch_ratio", parts_of(definition.value), _label_type(stream))]
    for number, (name, feature) in enumerate(stream.features.items()):
        if not isinstance(feature, DerivedFeature):
            fields.append(_feature_field(number, feature, of_item=name in in_items))
    return fields + carried_fields(stream)


def carried_fields(stream: Stream) -> list[_Field]:
    """Return the fields of interactions that predictions and outcomes carry as they are."""
    interactions = stream.interactions
    return [
        _Field(name, parts_of(pointer), _CARRIED_TYPES[name] | None, True, name in interactions.item_fields)
        for name, pointer in interactions.carried.items()
    ]


_CARRIED_TYPES: Final[Mapping[str, Any]] = dict(
    zip(CARRIED, (Propensity, TargetPropensity, LabelValue, LabelValue), strict=True)
)


def _label_type(stream: Stream) -> Any:
    """Return the type of the field that has the label."""
    definition = stream.labels
    match definition.value_kind:
        case "boolean":
            return bool
        case "signal":
            return Literal[tuple(definition.signals)]
    return LabelValue if isinstance(stream.target, RegressionSettings) else WatchRatio


def _signal_weights(definition: InputDefinition) -> dict[str, float]:
    """Return the weight of each signal; none where they have no weights."""
    if not (isinstance(definition, LabelDefinition) and definition.weights):
        return {}
    return dict.fromkeys(definition.signals, 1.0) | definition.weights


def _type_of(feature: EventFeature) -> Any:
    """Return the type of a feature's field."""
    match feature:
        case BooleanFeature():
            return bool
        case CategoryFeature():
            return Id
        case TextFeature():
            return str
        case VectorFeature(length=length):
            return Annotated[list[_Number], msgspec.Meta(min_length=length, max_length=length)]
    return _Number


def _from_json(shape: type[Any]) -> Callable[[Any], Any]:
    return msgspec.json.Decoder(shape).decode


def _from_objects(shape: type[Any]) -> Callable[[Any], Any]:
    return partial(msgspec.convert, type=shape)


def _decoder(
    record: type[Any],
    fields: list[_Field],
    ids: list[str],
    definition: InputDefinition,
    to_shape: Callable[[type[Any]], Callable[[Any], Any]] = _from_json,
) -> Callable[[Any], Any]:
    """Return what decodes a value to a record of a type derived from this one.

    `to_shape` returns what makes an object of a type of what is decoded: JSON, or objects and scalars.
    """
    if _is_flat(fields, definition):
        return to_shape(_flat_record(record, fields, ids))
    value_of: Callable[[Any], float] | None = None
    if isinstance(definition, LabelDefinition) and definition.value_kind != "number":
        value_of = float if definition.value_kind == "boolean" else definition.signals.__getitem__
    weights, namespace = _signal_weights(definition), _namespace(fields, ids)
    names = [field.name for field in fields if field.name != "time_of_day"]
    of_message = [*names, "weight"] if weights else names
    made = msgspec.defstruct(
        record.__name__, of_message, bases=(record,), namespace=namespace, frozen=True, gc=False
    )
    parse = to_shape(_shape(_tree(fields)))
    values = tuple_getter([_path(fields, field) for field in fields])
    at, read_time = names.index("timestamp"), times_reader(definition)

    def decode(value: Any) -> Any:
        found = list(values(parse(value)))
        read_time(found, at)
        said = found[-1]
        if value_of is not None:
            found[-1] = value_of(said)
        if weights:
            found.append(weights[said])
        return made(*found)

    return decode


def _is_flat(fields: list[_Field], definition: InputDefinition) -> bool:
    """Whether records have the fields of messages as they are."""
    converted = isinstance(definition, LabelDefinition) and definition.value_kind != "number"
    return definition.time_unit == "ms" and not converted and all(len(field.parts) == 1 for field in fields)


def _flat_record(record: type[Any], fields: list[_Field], ids: list[str]) -> type[Any]:
    """Return a type derived from this one, whose objects are parsed from messages at once."""
    return msgspec.defstruct(
        record.__name__,
        [(field.name, field.type, None) if field.optional else (field.name, field.type) for field in fields],
        bases=(record,),
        namespace=_namespace(fields, ids),
        rename={field.name: field.parts[0] for field in fields},
        frozen=True,
        kw_only=True,
        gc=False,
    )


def _namespace(fields: list[_Field], ids: list[str]) -> dict[str, Any]:
    """Return the members of a record's type, apart from its fields."""
    namespace: dict[str, Any] = {"ids": property(tuple_getter(ids)), "id_fields": tuple(ids)}
    if carried := [field.name for field in fields if field.name in CARRIED]:
        namespace["carried"] = property(tuple_getter(carried))
    return namespace


def slate_decoder(
    fields: list[_Field],
    ids: list[str],
    definition: InteractionDefinition,
    to_shape: Callable[[type[Any]], Callable[[Any], Any]] = _from_json,
) -> Callable[[Any], Any]:
    """Return what decodes a message with a list of items to a `Slate`.

    Parameters
    ----------
    fields
        The fields of an interaction, of which some are of each item.
    ids
        Those of them that are ids.
    definition
        Definition of the messages.
    to_shape
        Returns what makes an object of a type of what is decoded: JSON, or objects and scalars.
    """
    own, of_message = [each for each in fields if each.of_item], [each for each in fields if not each.of_item]
    items_at = _Field("items", parts_of(definition.items or ""), _items_type(own, definition.max_items))
    whole = [*of_message, items_at]
    parse = to_shape(_shape(_tree(whole)))
    values = tuple_getter([_path(whole, field) for field in whole])
    item_values = tuple_getter([_path(own, field) for field in own])
    names = [field.name for field in (*of_message, *own) if field.name != "time_of_day"]
    namespace = _namespace(fields, ids)
    made: Any = msgspec.defstruct(
        "Item", names, bases=(Interaction,), namespace=namespace, frozen=True, gc=False
    )
    of_slate = [field.name for field in whole if field.name != "time_of_day"]
    slate: Any = msgspec.defstruct("Slate", of_slate, bases=(Slate,), frozen=True, gc=False)
    at, read_time = names.index("timestamp"), times_reader(definition)
    refuse_twice = _twice_refuser(own, ".".join(items_at.parts))

    def decode(value: Any) -> Slate:
        *found, listed = values(parse(value))
        read_time(found, at)
        items = tuple(made(*found, *item_values(each)) for each in listed)
        refuse_twice(items)
        decoded: Slate = slate(*found, items)
        return decoded

    return decode


def _items_type(fields: list[_Field], most: int) -> Any:
    """Return the type of the list of a slate's items."""
    item = _shape(_tree(fields))
    return Annotated[list[item], msgspec.Meta(min_length=1, max_length=most)]  # type: ignore[valid-type]  # made just now


def _twice_refuser(fields: list[_Field], items: str) -> Callable[[Sequence[Interaction]], None]:
    """Return what refuses the items of a list in which one is twice, by its ids."""
    own = [field for field in fields if field.name.startswith("entity_")]
    ids, words = tuple_getter([field.name for field in own]), ".".join(own[0].parts)

    def refuse(found: Sequence[Interaction]) -> None:
        every = [*map(ids, found)]
        if len(set(every)) == len(every):
            return
        first: dict[tuple[Id, ...], int] = {}
        for number, item in enumerate(every):
            if first.setdefault(item, number) != number:
                raise msgspec.ValidationError(
                    f"The item {', '.join(map(repr, item))} is in the slate twice, also as "
                    f"`{items}[{first[item]}]` - at `$.{items}[{number}].{words}`"
                )

    return refuse


def _tree(fields: Iterable[_Field]) -> _Tree:
    return nested((field.parts, field) for field in fields)


def _shape(tree: _Tree) -> type[msgspec.Struct]:
    """Return the type of an object with these fields, which are called f0, f1 and so on.

    An object within it may be absent if each of its fields may.
    """
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for number, entry in enumerate(tree.values()):
        name = f"f{number}"
        if isinstance(entry, _Field):
            fields.append((name, entry.type, None) if entry.optional else (name, entry.type))
            continue
        inner = _shape(entry)
        empty = not any(field.required for field in msgspec.structs.fields(inner))
        fields.append((name, inner, msgspec.field(default_factory=inner)) if empty else (name, inner))
    rename = {f"f{number}": part for number, part in enumerate(tree)}
    return msgspec.defstruct("Message", fields, rename=rename, frozen=True, kw_only=True, gc=False)


def _path(fields: Iterable[_Field], field: _Field) -> str:
    """Return where a field is in the shape of all fields."""
    path, inner = [], _tree(fields)
    for part in field.parts:
        path.append(f"f{list(inner).index(part)}")
        inner = cast(_Tree, inner[part])
    return ".".join(path)
