"""Derive the schema of an input's messages from the stream's definition, for an input that has none yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pipeline.config.stream import InputDefinition, LabelDefinition, Stream, TimeUnit
from pipeline.records.encoding import encode
from pipeline.records.input_decoders import wanted_fields
from pipeline.records.schemas import (
    UnfitSchemaError,
    Wanted,
    WantedItems,
    WantedTree,
    WriterSchema,
    may_be_missing,
    wanted_tree,
)

_AVRO_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AVRO_TYPES: Final[Mapping[type, str]] = MappingProxyType(
    {int: "long", str: "string", float: "double", bool: "boolean"}
)
_AVRO_TIMES: Final[Mapping[TimeUnit, str]] = MappingProxyType(
    {"ms": "timestamp-millis", "us": "timestamp-micros"}
)
_JSON_TYPES: Final[Mapping[type, str]] = MappingProxyType(
    {int: "integer", str: "string", float: "number", bool: "boolean"}
)
JSON_DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""The newest dialect that registries know by themselves."""


def derived_schema(stream: Stream, definition: InputDefinition) -> WriterSchema:
    """Return a schema with the fields that a definition names, and no others.

    Ids may be text or whole numbers. Times are written in the unit of the definition.

    Parameters
    ----------
    stream
        Definition of the stream.
    definition
        Its interactions or its labels, whose format is Avro or JSON Schema.

    Returns
    -------
    WriterSchema
        The schema.

    Raises
    ------
    UnfitSchemaError
        A field has a name that Avro does not have.

    Examples
    --------
    >>> from pipeline.config.stream import KUAIREC
    >>> definition = KUAIREC.labels.model_copy(update={"format": "avro"})
    >>> derived_schema(KUAIREC, definition).text[:63]
    '{"type":"record","namespace":"forks.kuairec","name":"Label","fi'
    """
    tree = wanted_tree(wanted_fields(stream, definition))
    name = "Label" if isinstance(definition, LabelDefinition) else "Interaction"
    if definition.format == "avro":
        avro = {"type": "record", "namespace": f"forks.{stream.name}"} | _avro_record(tree, name)
        return WriterSchema("AVRO", encode(avro).decode())
    json = {"$schema": JSON_DIALECT, "title": name} | _json_object(tree)
    return WriterSchema("JSON", encode(json).decode())


def _avro_record(tree: WantedTree, name: str) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_avro_field(*each, name) for each in tree.items()]}


def _avro_field(name: str, wanted: Wanted | WantedTree, record: str) -> dict[str, Any]:
    if not _AVRO_NAME.fullmatch(name):
        raise UnfitSchemaError(f"Avro has no field of the name {name!r}")
    if isinstance(wanted, dict):
        types: list[Any] = [_avro_record(wanted, f"{record}_{name}")]
    elif isinstance(wanted, WantedItems):
        items = _avro_record(wanted_tree(wanted.fields), f"{record}_{name}")
        types = [{"type": "array", "items": items}]
    elif wanted.time_unit is not None and wanted.time_unit in _AVRO_TIMES:
        types = [{"type": "long", "logicalType": _AVRO_TIMES[wanted.time_unit]}]
    else:
        types = _sorted(wanted.kinds, _AVRO_TYPES)
        if wanted.repeated:
            types = [{"type": "array", "items": _only(types)}]
    if not may_be_missing(wanted):
        return {"name": name, "type": _only(types)}
    return {"name": name, "type": ["null", *types], "default": None}


def _json_object(tree: WantedTree) -> dict[str, Any]:
    properties = {name: _json_type(wanted) for name, wanted in tree.items()}
    required = [name for name, wanted in tree.items() if not may_be_missing(wanted)]
    return {"type": "object", "properties": properties, "required": required}


def _json_type(wanted: Wanted | WantedTree) -> dict[str, Any]:
    if isinstance(wanted, dict):
        return _json_object(wanted)
    if isinstance(wanted, WantedItems):
        return {"type": "array", "items": _json_object(wanted_tree(wanted.fields))}
    kind = {"type": _only(_sorted(wanted.kinds, _JSON_TYPES))}
    return {"type": "array", "items": kind} if wanted.repeated else kind


def _sorted(kinds: frozenset[type], names: Mapping[type, str]) -> list[Any]:
    position: Callable[[type], int] = [*names].index
    return [names[kind] for kind in sorted(kinds, key=position)]


def _only(types: list[Any]) -> Any:
    return types[0] if len(types) == 1 else types
