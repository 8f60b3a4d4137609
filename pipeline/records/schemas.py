"""The schemas that messages were written with, and where they come from: see `pipeline.kafka.registry`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol, TypeAlias

from pipeline.config.pointer import nested
from pipeline.config.stream import TimeUnit
from pipeline.records.decoding import UnusableValueError

MAX_SCHEMA_SIZE: Final = 2**20
"""Characters of a schema with those that it refers to, at most."""
PREFIX: Final = 5
"""Bytes before a message: the magic byte 0, and the schema's id in four bytes, the highest first."""
NOT_REGISTERED: Final = "is not in the registry"
"""Part of the reason why a message of an unknown schema cannot be used."""


class WriterSchema(NamedTuple):
    """A schema as the registry has it. What an id stands for never changes."""

    kind: str
    """`AVRO`, `PROTOBUF` or `JSON`."""
    text: str
    """Of Avro and JSON Schema, JSON; of Protobuf, a `FileDescriptorProto` in base64."""
    references: tuple[tuple[str, str], ...] = ()
    """Name and text of the schemas that it refers to, each before those that refer to it."""
    refusal: str | None = None
    """Why it is not even read; None for a schema that is."""

    @property
    def size(self) -> int:
        """Return the number of characters of all texts."""
        return len(self.text) + sum(len(text) for _, text in self.references)


class UnknownSchemaError(UnusableValueError):
    """The registry has no such schema."""

    def __init__(self, schema_id: int) -> None:
        super().__init__(f"schema {schema_id} {NOT_REGISTERED}")


class UnfitSchemaError(ValueError):
    """A schema that gives no message of an input; the text says why."""


class SchemaUnavailableError(Exception):
    """The registry has not answered yet: neither the schema nor that there is none."""


class SchemaSource(Protocol):
    """What knows schemas by their id."""

    def get(self, schema_id: int) -> WriterSchema:
        """Return a schema.

        Raises
        ------
        UnknownSchemaError
            There is none.
        SchemaUnavailableError, RegistryError
            Nobody knows now.
        """


class WantedField(NamedTuple):
    """A field that has to be in messages."""

    parts: tuple[str, ...]
    """Where it is."""
    kinds: frozenset[type]
    """What it may be: `int`, `float`, `str` and `bool`."""
    time_unit: TimeUnit | None = None
    """Of the time of the message, the unit that the definition says; None for any other field."""
    optional: bool = False
    """Whether it may be missing."""
    repeated: bool = False
    """Whether it is a list of such values."""


class WantedItems(NamedTuple):
    """A list of objects that has to be in messages: a slate's items."""

    parts: tuple[str, ...]
    """Where it is."""
    fields: tuple[WantedField, ...]
    """What each object has to have."""
    most: int
    """Objects in the list, at most."""


Wanted: TypeAlias = WantedField | WantedItems


class Parse(Protocol):
    """What parses a message's value, which begins with magic byte and schema id."""

    def __call__(self, value: bytes, /) -> object:
        """Return its fields.

        Raises
        ------
        UnusableValueError
            The bytes are none of this schema.
        """


class ParsedBy(NamedTuple):
    """What parses the messages of one schema."""

    parse: Parse
    """Returns the wanted fields of a message's value as nested dictionaries."""
    time_unit: TimeUnit | None = None
    """The unit of the times, where the schema says it; None for that of the stream's definition."""


WantedTree: TypeAlias = "dict[str, Wanted | WantedTree]"
"""Fields by where they are in a message."""


def wanted_tree(fields: Iterable[Wanted]) -> WantedTree:
    """Return fields by where they are.

    Examples
    --------
    >>> whole = frozenset({int})
    >>> tree = wanted_tree([WantedField(("user", "id"), whole), WantedField(("at",), whole)])
    >>> list(tree), list(tree["user"])
    (['user', 'at'], ['id'])
    """
    return nested((field.parts, field) for field in fields)


def may_be_missing(wanted: Wanted | WantedTree) -> bool:
    """Return whether a field, or each field of an object, may be missing."""
    if isinstance(wanted, WantedField):
        return wanted.optional
    if isinstance(wanted, WantedItems):
        return False
    return all(map(may_be_missing, wanted.values()))


def missing(path: tuple[str, ...]) -> str:
    """Return the reason of a field that is missing, in the words of msgspec.

    Examples
    --------
    >>> missing(("courier", "id"))
    'Object missing required field `id` - at `$.courier`'
    """
    where = f" - at `$.{'.'.join(path[:-1])}`" if len(path) > 1 else ""
    return f"Object missing required field `{path[-1]}`{where}"


def no_list(found: str, path: tuple[str, ...]) -> str:
    """Return the reason of what is no list of objects, in the words of msgspec.

    Examples
    --------
    >>> no_list("string", ("page", "shown"))
    'Expected `array of object`, got `string` - at `$.page.shown`'
    """
    return f"Expected `array of object`, got `{found}` - at `$.{'.'.join(path)}`"


def unfit(wanted: WantedField, found: str, path: tuple[str, ...]) -> str:
    """Return the reason of a field of an unfit type, in the words of msgspec.

    Examples
    --------
    >>> unfit(WantedField(("from",), frozenset({int, str})), "bytes", ("from",))
    'Expected `int | str`, got `bytes` - at `$.from`'
    """
    expected = " | ".join(sorted(kind.__name__ for kind in wanted.kinds))
    if wanted.repeated:
        expected = f"array of {expected}"
    return f"Expected `{expected}`, got `{found}` - at `$.{'.'.join(path)}`"
