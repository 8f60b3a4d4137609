"""Read the wanted fields of Avro messages, given the schema that they were written with.

fastavro reads into a reader's schema that has nothing but the wanted fields, so that all others are skipped.
That reader's schema is a part of the writer's: which types a field may have is checked once for each schema,
and values are checked as those of JSON are.

Some schemas let a small message cost much: those that contain themselves are read by recursion in C, and
arrays of items without bytes may have any number of them. Such schemas are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from pipeline.config.stream import TimeUnit
from pipeline.records.decoding import UnusableValueError
from pipeline.records.schemas import (
    PREFIX,
    Parse,
    ParsedBy,
    UnfitSchemaError,
    Wanted,
    WantedField,
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

MAX_DEPTH: Final = 64
"""Types within one another, at most."""
MAX_TYPES: Final = 20_000
"""Types of a schema, counted wherever a name stands for one, at most."""
_LOGICAL: Final = "forks.logicalType"
"""The name under which logical types are kept: fastavro would make objects of their values."""
_KINDS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "boolean": bool,
        "int": int,
        "long": int,
        "float": float,
        "double": float,
        "string": str,
        "enum": str,
    }
)
_TIME_UNITS: Final[Mapping[str, TimeUnit]] = MappingProxyType(
    {"timestamp-millis": "ms", "timestamp-micros": "us"}
)


def parsed_by(schema: WriterSchema, fields: list[Wanted]) -> ParsedBy:
    """Return what parses messages of a schema.

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
        A wanted field is missing or of another type, or the schema is refused.
    """
    from fastavro import parse_schema  # noqa: PLC0415 - of the extra `registry`

    writer, named = _parsed(schema)
    bounded = _Types(named).inspect(writer, ()).bounded
    projection = _Projection(named)
    reader = parse_schema(projection.of(writer, wanted_tree(fields), ()))
    return ParsedBy(_values(writer, reader, bounded=bounded), projection.time_unit)


def whole_values(writer: WriterSchema, reader: WriterSchema) -> Parse:
    """Return what parses values with all fields of a reader's schema, by the rules of Avro.

    Parameters
    ----------
    writer
        The schema of the writer.
    reader
        That of the reader, which may be another version.

    Returns
    -------
    Parse
        What parses the values.

    Raises
    ------
    UnfitSchemaError
        The writer's schema is refused.
    """
    parsed, named = _parsed(writer)
    bounded = _Types(named).inspect(parsed, ()).bounded
    same = parsed == _parsed(reader)[0]
    return _values(parsed, None if same else _parsed(reader, defaults=True)[0], bounded=bounded)


def _values(writer: Any, reader: Any, *, bounded: bool) -> Parse:
    """Return what reads values of a writer's schema with a reader's; None where it is the same."""
    from fastavro import schemaless_reader  # noqa: PLC0415 - of the extra `registry`

    # What is not skipped is read, and its end found.
    stream: type[BytesIO] = BytesIO if bounded or reader is None else _Bounded

    def parse(value: bytes) -> object:
        # One byte more than there is: what goes beyond the end is then seen, also if it was only skipped.
        file = stream(value + b"\0")
        file.seek(PREFIX)
        try:
            found = schemaless_reader(file, writer, reader, handle_unicode_errors="strict")
        except MemoryError:
            raise
        except Exception as error:  # whatever a library meets in bytes that somebody else wrote
            raise UnusableValueError(_malformed(error)) from None
        left = len(value) - file.tell()
        if left:
            raise UnusableValueError(
                "the value is cut off" if left < 0 else f"{left} bytes are left after the value's last field"
            )
        return found

    return parse


def _malformed(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"the value has text that is not UTF-8: {error.reason}"
    if isinstance(error, EOFError):
        return "the value is cut off"
    return f"the value is not of its schema ({type(error).__name__})"


class _Bounded(BytesIO):
    """Bytes whose end is an error: fastavro skips values of a fixed size without a look at the end."""

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        if size is not None and len(found) < size:
            raise EOFError
        return found


def _parsed(schema: WriterSchema, *, defaults: bool = False) -> tuple[Any, dict[str, Any]]:
    """Return a schema with full names, and all named types in it; with its defaults, if that is wanted."""
    from fastavro.schema import parse_schema  # noqa: PLC0415 - of the extra `registry`

    named: dict[str, Any] = {}
    texts = [*(text for _, text in schema.references), schema.text]
    try:
        parsed = [
            parse_schema(_bare(msgspec.json.decode(text), defaults=defaults), named_schemas=named)
            for text in texts
        ]
    except (MemoryError, UnfitSchemaError):
        raise
    except Exception as error:
        reason = truncate(str(error) or type(error).__name__)
        raise UnfitSchemaError(f"it is no schema of Avro that can be read: {reason}") from None
    return parsed[-1], named


def _bare(node: Any, depth: int = 0, *, defaults: bool = False) -> Any:
    """Return a schema whose logical types have another name, and without defaults, unless they are wanted.

    A default says nothing about what was written, and some that registries accept are refused by fastavro.
    """
    if depth > 2 * MAX_DEPTH:
        raise UnfitSchemaError(f"its types are nested more than {MAX_DEPTH} deep")
    if isinstance(node, list):
        return [_bare(each, depth + 1, defaults=defaults) for each in node]
    if isinstance(node, dict):
        return {
            _LOGICAL if name == "logicalType" else name: _bare(each, depth + 1, defaults=defaults)
            for name, each in node.items()
            if defaults or name != "default"
        }
    return node


class _Size(NamedTuple):
    """What is known of the bytes of a type's values."""

    some: bool
    """Each has at least one byte."""
    bounded: bool
    """fastavro finds out by itself where each is cut off, also where it skips it."""


class _Types:
    """The types of a schema, whichever way they are written."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._count = 0

    def resolved(self, node: Any) -> Any:
        """Return the type that a name stands for; other types as they are."""
        return self._named.get(node, node) if isinstance(node, str) else node

    def inspect(self, node: Any, within: tuple[str, ...]) -> _Size:
        """Refuse a type that contains itself, has too many parts, or lets values without bytes repeat."""
        node = self.resolved(node)
        self._count += 1
        if self._count > MAX_TYPES:
            raise UnfitSchemaError(f"it has more than {MAX_TYPES:,} types")
        if len(within) > MAX_DEPTH:
            raise UnfitSchemaError(f"its types are nested more than {MAX_DEPTH} deep")
        if isinstance(node, list):
            sizes = [self.inspect(each, (*within, "")) for each in node]
            return _Size(some=True, bounded=all(size.bounded for size in sizes))
        match kind := kind_of(node):
            case "record" | "error":
                if node["name"] in within:
                    raise UnfitSchemaError(f"{node['name']} contains itself, which is not supported")
                sizes = [self.inspect(field["type"], (*within, node["name"])) for field in node["fields"]]
                return _Size(any(size.some for size in sizes), all(size.bounded for size in sizes))
            case "array":
                items = self.inspect(node["items"], (*within, ""))
                if not items.some:
                    raise UnfitSchemaError(
                        "it has an array of items without bytes, of which any number may be there"
                    )
                return _Size(some=True, bounded=items.bounded and self._ends(node["items"]))
            case "map":
                return _Size(some=True, bounded=self.inspect(node["values"], (*within, "")).bounded)
            case "fixed":
                return _Size(some=node["size"] > 0, bounded=True)
        return _Size(some=kind != "null", bounded=True)

    def _ends(self, node: Any) -> bool:
        """Return whether each value has a length or a whole number, which is never skipped beyond the end."""
        node = self.resolved(node)
        if isinstance(node, list):
            return True
        kind = kind_of(node)
        if kind in {"record", "error"}:
            return any(self._ends(field["type"]) for field in node["fields"])
        return kind not in {"boolean", "float", "double", "fixed", "null"}


def kind_of(node: Any) -> str:
    """Return the name of a type's kind, such as ``long`` or ``record``.

    Examples
    --------
    >>> kind_of("long"), kind_of({"type": "long"})
    ('long', 'long')
    """
    return str(node["type"] if isinstance(node, dict) else node)


class _Projection:
    """Makes the part of a schema that has the wanted fields."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self.time_unit: TimeUnit | None = None
        self._types = _Types(named)
        self._names = 0

    def of(self, node: Any, tree: WantedTree, path: tuple[str, ...]) -> Any:
        """Return the part of a type that has the fields of a tree: a record, or null or a record."""
        branches = self._branches(node)
        records = [branch for branch in branches if kind_of(branch) == "record"]
        if len(records) != 1 or any(kind_of(branch) not in {"record", "null"} for branch in branches):
            at = f" - at `$.{'.'.join(path)}`" if path else ""
            found = " | ".join(map(kind_of, branches))
            raise UnfitSchemaError(f"Expected `object`, got `{found}`{at}")
        parts = [self._record(each, tree, path) if each in records else each for each in branches]
        return parts if isinstance(self._types.resolved(node), list) else parts[0]

    def _branches(self, node: Any) -> list[Any]:
        """Return the types of a union, or a type by itself."""
        node = self._types.resolved(node)
        return [self._types.resolved(each) for each in (node if isinstance(node, list) else [node])]

    def _record(self, node: Any, tree: WantedTree, path: tuple[str, ...]) -> dict[str, Any]:
        types = {field["name"]: field["type"] for field in node["fields"]}
        for name, wanted in tree.items():
            if name not in types and not may_be_missing(wanted):
                raise UnfitSchemaError(missing((*path, name)))
        fields = [
            {"name": name, "type": self._field(kind, tree[name], (*path, name))}
            for name, kind in types.items()
            if name in tree
        ]
        return self._renamed({"type": "record", "name": node["name"], "fields": fields})

    def _renamed(self, node: dict[str, Any]) -> dict[str, Any]:
        """Return a named type under a name of its own: a type may be there twice, with other parts."""
        self._names += 1
        return node | {"name": f"part_{self._names}", "aliases": [node["name"]]}

    def _field(self, node: Any, wanted: Wanted | WantedTree, path: tuple[str, ...]) -> Any:
        if isinstance(wanted, dict):
            return self.of(node, wanted, path)
        if isinstance(wanted, WantedItems):
            return self._items(node, wanted, path)
        branches = self._branches(node)
        kinds = wanted.kinds | {int} if float in wanted.kinds else wanted.kinds
        if wanted.repeated:
            return self._list(node, wanted, kinds, path)
        units = {unit for each in branches if wanted.time_unit and (unit := self._unit(each, path))}
        fitting = units or any(_KINDS.get(kind_of(each)) in kinds for each in branches)
        if len(units) > 1 or not fitting or any(kind_of(each) not in {*_KINDS, "null"} for each in branches):
            found = " | ".join(_described(each) for each in branches)
            raise UnfitSchemaError(unfit(wanted, found, path))
        self.time_unit = units.pop() if units else self.time_unit
        parts = [self._renamed(each) if kind_of(each) == "enum" else each for each in branches]
        return parts if isinstance(self._types.resolved(node), list) else parts[0]

    def _items(self, node: Any, wanted: WantedItems, path: tuple[str, ...]) -> Any:
        """Return the part of a type that is a list of objects with the wanted fields, or null."""
        branches = self._branches(node)
        lists = [each for each in branches if kind_of(each) == "array"]
        if len(lists) != 1 or any(kind_of(each) not in {"array", "null"} for each in branches):
            raise UnfitSchemaError(no_list(" | ".join(map(kind_of, branches)), path))
        item = self.of(lists[0]["items"], wanted_tree(wanted.fields), (*path[:-1], f"{path[-1]}[...]"))
        parts = [{"type": "array", "items": item} if each in lists else each for each in branches]
        return parts if isinstance(self._types.resolved(node), list) else parts[0]

    def _list(self, node: Any, wanted: WantedField, kinds: frozenset[type], path: tuple[str, ...]) -> Any:
        """Return the part of a type that is a list of numbers, or null."""
        branches = self._branches(node)
        for each in branches:
            items = self._branches(each["items"]) if kind_of(each) == "array" else []
            fitting = items and all(_KINDS.get(kind_of(item)) in kinds for item in items)
            if not fitting and kind_of(each) != "null":
                raise UnfitSchemaError(unfit(wanted, " | ".join(map(_described, branches)), path))
        return branches if isinstance(self._types.resolved(node), list) else branches[0]

    def _unit(self, node: Any, path: tuple[str, ...]) -> TimeUnit | None:
        """Return the unit that a type of times has, None for a plain type."""
        logical = node.get(_LOGICAL) if isinstance(node, dict) else None
        if not isinstance(logical, str) or kind_of(node) not in {"int", "long"}:
            return None
        if logical not in _TIME_UNITS:
            at = f"`{logical}` - at `$.{'.'.join(path)}`"
            raise UnfitSchemaError(f"Expected a time of timestamp-millis or timestamp-micros, got {at}")
        return _TIME_UNITS[logical]


def _described(node: Any) -> str:
    logical = node.get(_LOGICAL) if isinstance(node, dict) else None
    return f"{kind_of(node)} ({logical})" if isinstance(logical, str) else kind_of(node)
