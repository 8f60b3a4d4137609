"""How large the records of the outputs may become: what the types of their fields allow.

Messages are accepted by the types of their fields, and records have these fields. So no message that is
accepted makes a record that is larger, whatever is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import inspect

from pipeline.config.stream import Stream
from pipeline.records.dead_letter import record_size
from pipeline.records.output_types import OutputTypes

MAX_SHARES_BYTES: Final = 250_000
"""Bytes from which on no further share goes into an outcome: it has one share more, at most."""

_INTEGER: Final = len(str(-(2**63)))
_FLOAT: Final = len(str(-2.2250738585072014e-308))
_CHARACTER: Final = len(r"\u0000")
"""Bytes of a character in JSON, at most. In UTF-8 it has fewer."""


_LONGEST_KEY: Final = 4 * 256
"""Bytes of a key, at most: those of an id in UTF-8."""


class LargestRecords(NamedTuple):
    """The most bytes of a record of each output, with key and overhead, before it is compressed."""

    prediction: int
    outcome: int
    """Without shares."""
    label_request: int
    share: int

    @classmethod
    def of(cls, stream: Stream, challengers: Iterable[str], interval: int) -> LargestRecords:
        """Return those of a stream.

        Parameters
        ----------
        stream
            The definition.
        challengers
            The names of the challengers.
        interval
            Outcomes in a share.

        Examples
        --------
        >>> from pipeline.config.stream import KUAIREC
        >>> LargestRecords.of(KUAIREC, [], 20).prediction
        6259
        """
        types, items = OutputTypes.of(stream), stream.interactions.max_items
        known = {
            "challengers": _object(challengers, _FLOAT),
            "tables": _object(stream.tables, _INTEGER),
            "shared": 0,
        }
        prediction = types.prediction if types.slates is None else types.slates.record
        if types.slates is not None:
            known["items"] = items * (1 + _bytes(inspect.type_info(types.slates.item), known, interval))
        kinds = prediction, types.outcome, types.label_request, types.share
        most = (_bytes(inspect.type_info(kind), known, interval) for kind in kinds)
        return cls(*(record_size(b"k" * _LONGEST_KEY, None, ()) + size for size in most))


def _object(names: Iterable[str], value: int) -> int:
    """Return the bytes of an object with values of some bytes."""
    return 2 + sum(len(msgspec.json.encode(name)) + 2 + value for name in names)


def _bytes(info: inspect.Type, known: Mapping[str, int], length: int) -> int:
    """Return the bytes that a value of a type has in JSON, at most.

    Parameters
    ----------
    info
        The type.
    known
        Bytes of fields by name, of which the types do not tell.
    length
        Elements of lists of any length.
    """
    while isinstance(info, inspect.Metadata):
        info = info.type
    match info:
        case inspect.UnionType():
            return max(_bytes(each, known, length) for each in info.types)
        case inspect.StructType():
            return 2 + sum(_field(field, known, length, named=not info.array_like) for field in info.fields)
        case inspect.ListType() | inspect.VarTupleType():
            most = length if info.max_length is None else info.max_length
            return 2 + most * (1 + _bytes(info.item_type, known, length))
        case inspect.StrType(max_length=int(most)):
            return 2 + _CHARACTER * most
        case inspect.LiteralType():
            return max(len(msgspec.json.encode(each)) for each in info.values)
    return _SCALARS[type(info)]


def _field(field: inspect.Field, known: Mapping[str, int], length: int, *, named: bool) -> int:
    name = len(msgspec.json.encode(field.encode_name)) + 1 if named else 0
    value = known.get(field.name)
    return 1 + name + (_bytes(field.type, known, length) if value is None else value)


_SCALARS: Final[Mapping[type[inspect.Type], int]] = {
    inspect.BoolType: len("false"),
    inspect.FloatType: _FLOAT,
    inspect.IntType: _INTEGER,
    inspect.NoneType: len("null"),
}
