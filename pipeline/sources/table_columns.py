"""The columns of a table that the pointers of a stream's definition lead to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Final

import polars as pl

from pipeline.config.pointer import parts_of
from pipeline.config.stream import LabelDefinition
from pipeline.config.stream_features import FieldFeature, NumberFeature
from pipeline.config.times import TimeSettings
from pipeline.errors import DataError
from pipeline.records.fields import INTEGER_LIMIT
from pipeline.records.input_times import milliseconds_reader, time_of_day
from pipeline.sources.table_files import NOTHING, read_table_file
from pipeline.truncate import truncate

ID_RANGE: Final = (-INTEGER_LIMIT, INTEGER_LIMIT - 1)
"""From and to which whole numbers are ids as numbers; a column with others is text."""
EXACT: Final = 2**53
"""Numbers up to which every whole one is a float."""
_UNIT: Final = "\x1f"
"""Stands between ids; no text that is read has it."""
_OTHER, _KEY = f"{_UNIT}labels", f"{_UNIT}key"
"""The columns of the rows of another table, and of their ids."""


class TableFile:
    """A table, and the columns that pointers lead to.

    Parameters
    ----------
    path
        Where it was read.
    frame
        Its rows.
    within
        The column of objects in which pointers begin; None for the table itself.
    """

    def __init__(self, path: Path, frame: pl.DataFrame, within: str | None = None) -> None:
        self.path, self.frame = path, frame
        self._within = within

    @classmethod
    def read(cls, path: Path) -> TableFile:
        """Read a table, see `pipeline.sources.table_files.read_table_file`."""
        return cls(path, read_table_file(path).frame)

    def keys(self, pointers: Sequence[str]) -> pl.Series:
        """Return the ids of each row as one text; null where one is missing."""
        ids = [self.ids(pointer).cast(pl.String) for pointer in pointers]
        return self.frame.select(pl.concat_str(ids, separator=_UNIT).alias(_KEY)).to_series()

    def joined(
        self, own: Sequence[str], labels: TableFile, other: Sequence[str]
    ) -> tuple[TableFile, TableFile]:
        """Return this table with the rows of another of the same ids, and the other as rows of this one.

        Parameters
        ----------
        own
            Where the ids are in this table.
        labels
            The other table, in which the ids are once at most.
        other
            Where the ids are in it.
        """
        rows = labels.frame.select(labels.keys(other), pl.struct(pl.all()).alias(_OTHER))
        frame = self.frame.with_columns(self.keys(own)).join(rows, on=_KEY, how="left", maintain_order="left")
        return TableFile(self.path, frame.drop(_KEY)), TableFile(labels.path, frame, _OTHER)

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """The types of the columns, by name."""
        kind = self.frame.schema[self._within] if self._within is not None else pl.Struct(self.frame.schema)
        return _fields_of(kind)

    def find(self, pointer: str) -> pl.Expr | None:
        """Return the column of a pointer; None if there is none."""
        parts, columns = parts_of(pointer), self.columns
        if ".".join(parts) in columns:
            parts = (".".join(parts),)
        kind: pl.DataType | None = columns.get(parts[0])
        for part in parts[1:]:
            kind = _fields_of(kind).get(part)
        if kind is None:
            return None
        path = parts if self._within is None else (self._within, *parts)
        return reduce(lambda column, part: column.struct.field(part), path[1:], pl.col(path[0]))

    def ids(self, pointer: str, *, required: bool = True) -> pl.Expr:
        """Return a column of ids: text or whole numbers; numbers of rows if it is not there nor required.

        A column is text if one of its whole numbers does not fit 64 bits.
        """
        column = self.find(pointer)
        if column is None and not required:
            return pl.int_range(pl.len(), dtype=pl.Int64)
        column = self._existing(pointer)
        values = self.frame.select(column).to_series()
        if isinstance(values.dtype, pl.Categorical | pl.Enum):
            return column.cast(pl.String)
        if values.dtype.is_float() and _are_whole(values):
            return column.cast(pl.Int64)  # as other tools write whole numbers, some of which are missing
        if not (values.dtype.is_integer() or values.dtype == pl.String):
            raise DataError(
                f"{self.path}: {pointer} has values of the type {values.dtype}; ids are text or whole numbers"
            )
        if values.dtype == pl.String or _are_64_bits(values):
            return column
        return column.cast(pl.String)

    def number(self, pointer: str) -> pl.Expr:
        """Return a column of numbers; true counts as 1, and what is no number is null."""
        return self._existing(pointer).cast(pl.Float64, strict=False)

    def optional_number(self, pointer: str) -> pl.Expr:
        """Return a column of numbers; nulls where there is no such column."""
        if self.find(pointer) is None:
            return pl.lit(None, dtype=pl.Float64)
        return self.number(pointer)

    def label(self, definition: LabelDefinition) -> pl.Expr:
        """Return the column of what labels count as; null for a signal that the definition does not name."""
        if definition.value_kind != "signal":
            return self.number(definition.value)
        signals = {name: float(value) for name, value in definition.signals.items()}
        text = self.text(definition.value, "" if "" in signals else None)
        return text.replace_strict(signals, default=None, return_dtype=pl.Float64)

    def says_nothing(self, pointer: str) -> pl.Expr:
        """Return where a column has no value, or a text that stands for none."""
        column = self._existing(pointer)
        text = column.cast(pl.String, strict=False).str.strip_chars().str.to_lowercase()
        return column.is_null() | text.is_in(NOTHING)

    def text(self, pointer: str, missing: str | None = None) -> pl.Expr:
        """Return a column of text, with this text where there is none."""
        column = self._existing(pointer).cast(pl.String)
        return column if missing is None else column.fill_null(missing)

    def feature(self, feature: FieldFeature) -> pl.Expr:
        """Return the column of a feature; nulls where there is no such column and it may be missing."""
        if feature.missing is not None and self.find(feature.field) is None:
            return pl.lit(None)
        column = self._existing(feature.field)
        if isinstance(feature, NumberFeature) and self.frame.select(column).to_series().dtype == pl.String:
            return column.cast(pl.Float64, strict=False)  # as a cell that is no number makes them text
        return column

    def time(self, pointer: str, settings: TimeSettings, clock: str | None = None) -> pl.Expr:
        """Return a column of times, in milliseconds; what is no time is null.

        Parameters
        ----------
        pointer
            Where the time is.
        settings
            How it is written.
        clock
            Where the time of the day is; None if the time has it.
        """
        values = self.frame.select(self._existing(pointer).alias("time")).to_series()
        times = milliseconds_of(values, settings)
        if clock is not None:
            times += _read_each(
                self.frame.select(self._existing(clock).alias("time")).to_series(), time_of_day
            )
        return pl.lit(times)

    def _existing(self, pointer: str) -> pl.Expr:
        column = self.find(pointer)
        if column is None:
            there = truncate(", ".join(self.columns))
            raise DataError(f"{self.path}: no column for {pointer}; there are {there}")
        return column


def _fields_of(kind: pl.DataType | None) -> dict[str, pl.DataType]:
    fields = kind.fields if isinstance(kind, pl.Struct) else []
    return {field.name: field.dtype for field in fields if isinstance(field.dtype, pl.DataType)}


def milliseconds_of(values: pl.Series, settings: TimeSettings) -> pl.Series:
    """Return times in milliseconds; null for what is no time, or does not say its zone where nobody does."""
    kind, unit = values.dtype, settings.time_unit
    if kind.is_temporal():
        zone = kind.time_zone if isinstance(kind, pl.Datetime) else None
        if zone is None and settings.utc_offset is None:
            return pl.Series([None], dtype=pl.Int64).new_from_index(0, len(values))
        offset = (settings.utc_offset or 0) * 60_000 if zone is None else 0
        return values.cast(pl.Datetime("ms", zone)).cast(pl.Int64) - offset
    if unit in {"iso8601", "text"}:
        return _read_each(values, milliseconds_reader(settings))
    if unit == "s":
        return (values.cast(pl.Float64, strict=False) * 1000).round().cast(pl.Int64, strict=False)
    return values.cast(pl.Int64, strict=False) // {"ms": 1, "us": 1_000, "ns": 1_000_000}[unit]


def _read_each(values: pl.Series, read: Callable[[Any], int]) -> pl.Series:
    """Return what each different value is read as; null for what cannot be."""
    if values.dtype.is_float() and _are_whole(values):
        values = values.cast(pl.Int64)
    found: dict[object, int | None] = {None: None}
    for value in values.unique().drop_nulls():
        try:
            found[value] = read(value if isinstance(value, int) else str(value))
        except ValueError:
            found[value] = None
    return pl.Series([found[value] for value in values], dtype=pl.Int64)


def _are_64_bits(values: pl.Series) -> bool:
    """Return whether all whole numbers are within `ID_RANGE`."""
    least, most = values.min(), values.max()
    return not (isinstance(least, int) and isinstance(most, int)) or (
        ID_RANGE[0] <= least and most <= ID_RANGE[1]
    )


def _are_whole(values: pl.Series) -> bool:
    """Return whether all numbers are whole, and so small that each is exact."""
    known = values.drop_nulls()
    return bool((known.is_between(-EXACT, EXACT) & (known == known.round())).all())
