"""The ids in records: one field for each entity of the stream, under the name that its definition gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from pipeline.records.fields import Id


def entity_fields(count: int) -> list[str]:
    """Return the fields of records that hold the ids of so many entities.

    Examples
    --------
    >>> entity_fields(2)
    ['entity_0', 'entity_1']
    """
    return [f"entity_{number}" for number in range(count)]


def tuple_getter(fields: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gets these fields of a record as a tuple.

    Examples
    --------
    >>> tuple_getter(["real", "imag"])(1 + 2j), tuple_getter(["real"])(1 + 2j), tuple_getter([])(1 + 2j)
    ((1.0, 2.0), (1.0,), ())
    """
    if len(fields) > 1:
        return attrgetter(*fields)
    if fields:
        one = attrgetter(*fields)
        return lambda record: (one(record),)
    return lambda _: ()


def columns_of(rows: Sequence[tuple[Id, ...]], count: int) -> tuple[list[Id], ...]:
    """Return the ids of events that name so many entities, one column for each.

    Examples
    --------
    >>> columns_of([(1, "a"), (2, "b")], 2), columns_of([], 2)
    (([1, 2], ['a', 'b']), ([], []))
    """
    return tuple(map(list, zip(*rows, strict=True))) if rows else tuple([] for _ in range(count))


def columns_joined(columns: tuple[list[Id], ...], more: tuple[list[Id], ...]) -> tuple[list[Id], ...]:
    """Append columns of ids to others, in place, where either may be none as there are no events.

    Examples
    --------
    >>> columns_joined(([1], ["a"]), ([2], ["b"])), columns_joined((), ([2], ["b"]))
    (([1, 2], ['a', 'b']), ([2], ['b']))
    """
    if not columns:
        return tuple(list(column) for column in more)
    if more:
        for column, addition in zip(columns, more, strict=True):
            column.extend(addition)
    return columns
