"""Read the wanted fields of Protobuf messages, given the schema that they were written with.

The registry gives the descriptor of a schema, of which a class of messages is made. A field is called by its
name in the schema. One that can tell whether it was set, and was not, is missing; any other has its default.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pipeline.config.stream import TimeUnit
from pipeline.records.decoding import UnusableValueError
from pipeline.records.schemas import (
    PREFIX,
    ParsedBy,
    UnfitSchemaError,
    Wanted,
    WantedItems,
    WantedTree,
    WriterSchema,
    may_be_missing,
    missing,
    no_list,
    unfit,
    wanted_tree,
)
from pipeline.truncate import truncate

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

MAX_INDEXES: Final = 16
"""Numbers that say which type of its schema a message has, at most: types nested so deep."""
MAX_INDEX_BYTES: Final = 5
"""Bytes of such a number, at most."""
TIMESTAMP: Final = "google.protobuf.Timestamp"
_BUILT_IN: Final = (
    "any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct", "timestamp",
    "type", "wrappers",
)  # fmt: skip
"""Files under google/protobuf that every schema may import."""

_Read = Callable[[Any], Any]
"""Returns the wanted fields of a message, or the value of a field."""


def parsed_by(schema: WriterSchema, fields: list[Wanted]) -> ParsedBy:
    """Return what parses messages of a schema.

    A schema may have several types of messages, and each value says which it is. So whether the fields fit is
    found when a type is met first.

    Parameters
    ----------
    schema
        The schema of the writer.
    fields
        What is wanted.

    Returns
    -------
    ParsedBy
        What parses the messages.

    Raises
    ------
    UnfitSchemaError
        No class of messages can be made of the schema.
    """
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - of the extra `registry`
    from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415 - as above

    file, tree = _descriptor(schema), wanted_tree(fields)
    types: dict[tuple[int, ...], tuple[Any, _Read]] = {}

    def type_of(indexes: tuple[int, ...]) -> tuple[Any, _Read]:
        found = types.get(indexes)
        if found is None:
            descriptor = _message_type(file, indexes)
            try:
                read = _object(descriptor, tree, ())
            except UnfitSchemaError as error:
                raise msgspec.ValidationError(f"{descriptor.full_name}: {error}") from None
            found = types[indexes] = GetMessageClass(descriptor), read
        return found

    def parse(value: bytes) -> object:
        indexes, begin = _indexes(value)
        message_type, read = type_of(indexes)
        message = message_type()
        try:
            message.ParseFromString(value[begin:])
        except DecodeError:
            raise UnusableValueError("the value is no message of its schema, or is cut off") from None
        return read(message)

    return ParsedBy(parse)


def _indexes(value: bytes) -> tuple[tuple[int, ...], int]:
    """Return which type a message has, and where its bytes begin; 0 stands for the first type."""
    count, at = _number(value, PREFIX)
    if not 0 <= count <= MAX_INDEXES:
        raise UnusableValueError(f"the value names a type by {count} numbers")
    indexes = []
    for _ in range(count):
        index, at = _number(value, at)
        indexes.append(index)
    return tuple(indexes) or (0,), at


def _number(value: bytes, at: int) -> tuple[int, int]:
    """Return a whole number, written as Protobuf's sint32, and where it ends."""
    number = 0
    for place, byte in enumerate(value[at : at + MAX_INDEX_BYTES]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at + place + 1
    raise UnusableValueError("the value is cut off before it names the type of its message")


def _message_type(file: FileDescriptor, indexes: Sequence[int]) -> Descriptor:
    types: Sequence[Descriptor] = list(file.message_types_by_name.values())
    found = None
    for index in indexes:
        if not 0 <= index < len(types):
            raise UnusableValueError(
                f"the value names a type by {list(indexes)}, which its schema does not have"
            )
        found = types[index]
        types = list(found.nested_types)
    assert found is not None
    return found


def _descriptor(schema: WriterSchema) -> FileDescriptor:
    """Return the descriptor of a schema, in a pool of its own."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto  # noqa: PLC0415 - of the extra `registry`
    from google.protobuf.descriptor_pool import DescriptorPool  # noqa: PLC0415 - as above

    texts = dict(schema.references)
    pool, added = DescriptorPool(), set[str]()

    def add(name: str, text: str) -> None:
        file = FileDescriptorProto()
        file.ParseFromString(b64decode(text, validate=True))
        file.name = name
        for dependency in file.dependency:
            if dependency not in added and dependency not in texts:
                add_built_in(dependency)
        added.add(name)
        pool.AddSerializedFile(file.SerializeToString())

    def add_built_in(name: str) -> None:
        found = _built_in(name)
        added.add(name)
        for dependency in found.dependencies:
            if dependency.name not in added:
                add_built_in(dependency.name)
        pool.AddSerializedFile(found.serialized_pb)

    try:
        for name, text in schema.references:
            add(name, text)
        add("", schema.text)
        return pool.FindFileByName("")
    except MemoryError:
        raise
    except Exception as error:  # whatever a library meets in a descriptor that somebody else wrote
        reason = truncate(str(error) or type(error).__name__)
        raise UnfitSchemaError(f"it is no schema of Protobuf that can be read: {reason}") from None


def _built_in(name: str) -> FileDescriptor:
    """Return a file that every schema may import: one of Protobuf's, or one that was imported here."""
    from google.protobuf.descriptor_pool import Default  # noqa: PLC0415 - of the extra `registry`

    for each in _BUILT_IN:
        if name == f"google/protobuf/{each}.proto":
            import_module(f"google.protobuf.{each}_pb2")
    return Default().FindFileByName(name)


def _object(descriptor: Descriptor, tree: WantedTree, path: tuple[str, ...]) -> _Read:
    """Return what makes a dictionary of a message of this type."""
    entries: list[tuple[str, bool, _Read | None]] = []
    for name, wanted in tree.items():
        field = descriptor.fields_by_name.get(name)
        if field is None:
            if may_be_missing(wanted):
                continue
            raise UnfitSchemaError(missing((*path, name)))
        entries.append((name, field.has_presence, _value(field, wanted, (*path, name))))

    def read(message: Any) -> dict[str, Any]:
        found = {}
        for name, has_presence, value in entries:
            if has_presence and not message.HasField(name):
                continue
            given = getattr(message, name)
            found[name] = given if value is None else value(given)
        return found

    return read


def _value(field: FieldDescriptor, wanted: Wanted | WantedTree, path: tuple[str, ...]) -> _Read | None:
    """Return what makes the value of a field; None if it is one already."""
    kinds: dict[int, type] = {
        field.CPPTYPE_BOOL: bool,
        field.CPPTYPE_DOUBLE: float,
        field.CPPTYPE_FLOAT: float,
        field.CPPTYPE_INT32: int,
        field.CPPTYPE_INT64: int,
        field.CPPTYPE_UINT32: int,
        field.CPPTYPE_UINT64: int,
    }
    described = _described(field)
    if isinstance(wanted, dict):
        if field.is_repeated or field.message_type is None:
            raise UnfitSchemaError(f"Expected `object`, got `{described}` - at `$.{'.'.join(path)}`")
        return _object(field.message_type, wanted, path)
    if isinstance(wanted, WantedItems):
        return _items(field, wanted, described, path)
    if wanted.time_unit is not None and described == TIMESTAMP:
        if wanted.time_unit == "text":
            raise UnfitSchemaError(f"{'.'.join(path)} is a {TIMESTAMP}: leave time_format and time_unit out")
        return _TIMES[wanted.time_unit]
    kind = str if field.type == field.TYPE_STRING else kinds.get(field.cpp_type)
    accepted = wanted.kinds | {int} if float in wanted.kinds else wanted.kinds
    if field.is_repeated != wanted.repeated or kind not in accepted:
        raise UnfitSchemaError(unfit(wanted, described, path))
    return list if wanted.repeated else None


def _items(field: FieldDescriptor, wanted: WantedItems, described: str, path: tuple[str, ...]) -> _Read:
    """Return what makes dictionaries of the messages of a list, as far as one that is too long is known."""
    if not field.is_repeated or field.message_type is None:
        raise UnfitSchemaError(no_list(described, path))
    read = _object(field.message_type, wanted_tree(wanted.fields), (*path[:-1], f"{path[-1]}[...]"))
    return lambda messages: [read(each) for each in messages[: wanted.most + 1]]


def _text(timestamp: Any) -> str:
    try:
        return str(timestamp.ToJsonString())
    except ValueError as error:  # before the year 1 or after the year 9999
        raise msgspec.ValidationError(f"{TIMESTAMP}: {error}") from None


_TIMES: Final[Mapping[TimeUnit, _Read]] = MappingProxyType(
    {
        "ms": lambda timestamp: timestamp.seconds * 1000 + timestamp.nanos // 1_000_000,
        "us": lambda timestamp: timestamp.seconds * 1_000_000 + timestamp.nanos // 1_000,
        "ns": lambda timestamp: timestamp.seconds * 1_000_000_000 + timestamp.nanos,
        "s": lambda timestamp: timestamp.seconds + timestamp.nanos / 1e9,
        "iso8601": _text,
    }
)
"""Functions from Protobuf's own times to those of a definition."""


def _described(field: FieldDescriptor) -> str:
    """Return the name of a field's type."""
    names = {
        getattr(field, name): name.removeprefix("TYPE_").lower() for name in dir(field) if "TYPE_" in name[:5]
    }
    kind = field.message_type.full_name if field.message_type is not None else names[field.type]
    return f"repeated {kind}" if field.is_repeated else kind
