"""The columns of a table, as a draft of its definition looks at them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import polars as pl

from pipeline.config.stream import RESERVED, TimeUnit
from pipeline.tools.stream.checking import unit_of

_OF_PARENT: Final = frozenset({"id", "key", "uuid", "value"})
"""Names of fields that say nothing without that of their object."""


class Column(NamedTuple):
    """A column, or a field of a column of objects."""

    pointer: str
    values: pl.Series
    """Some of its values."""
    nulls: bool
    """Whether any row has none."""

    @property
    def name(self) -> str:
        """What it may be called in a definition."""
        parts = self.pointer.lower().split("/")[1:]
        last = parts[-2] if len(parts) > 1 and parts[-1] in _OF_PARENT else parts[-1]
        name = re.sub(r"[^a-z0-9_]", "_", last).strip("_")
        return name if name[:1].isalpha() else f"f_{name}"

    @property
    def distinct(self) -> int:
        """Number of different values."""
        return self.values.drop_nulls().n_unique()

    @property
    def unit(self) -> TimeUnit | None:
        """The unit of its times; None if it has no times."""
        if self.values.dtype.is_temporal():
            return "iso8601"
        some = self.values.drop_nulls()
        return unit_of(some[len(some) // 2]) if len(some) else None


def columns_of(frame: pl.DataFrame, some: pl.DataFrame, parent: str = "") -> Iterator[Column]:
    """Yield the columns of a table, and the fields of those that hold objects.

    Parameters
    ----------
    frame
        All rows.
    some
        The rows whose values are looked at.
    parent
        Pointer to the object that these are fields of.
    """
    for series, values in zip(frame, some, strict=True):
        pointer = f"{parent}/{series.name.replace('~', '~0').replace('/', '~1')}"
        if isinstance(series.dtype, pl.Struct):
            yield from columns_of(series.struct.unnest(), values.struct.unnest(), pointer)
        elif not series.dtype.is_nested():
            yield Column(pointer, values, bool(series.null_count()))


def is_id(column: Column) -> bool:
    return column.values.dtype == pl.String or column.values.dtype.is_integer()


def is_unique(column: Column) -> bool:
    return column.distinct == len(column.values)


def is_binary(column: Column) -> bool:
    dtype = column.values.dtype
    return dtype == pl.Boolean or (dtype.is_numeric() and set(column.values.drop_nulls().unique()) <= {0, 1})


def is_signal(column: Column) -> bool:
    """Whether there are two values, of text or of numbers that are not 0 and 1."""
    dtype = column.values.dtype
    return (dtype == pl.String or dtype.is_integer()) and column.distinct == 2 and not is_binary(column)


def unlike(name: str) -> str:
    """Return a name that no other field of outputs has."""
    return f"{name}_value" if name in RESERVED else name
