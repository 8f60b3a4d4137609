"""Read the events of any stream from a table: CSV, Parquet, or one JSON object a line."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Final

import polars as pl

from pipeline.config.pointer import parts_of
from pipeline.config.section import TimeUnit
from pipeline.config.stream import WEIGHT, LabelDefinition, Stream
from pipeline.config.stream_features import DerivedFeature, FieldFeature
from pipeline.config.target_settings import RegressionSettings
from pipeline.errors import DataError
from pipeline.records.entities import entity_fields
from pipeline.records.fields import INTEGER_LIMIT
from pipeline.sources.kuairec import HIGHEST_WATCH_RATIO, Events
from pipeline.sources.row_faults import Field, checks, examples, first_failures
from pipeline.sources.slate_rows import refuse_shared_columns, slate_faults, with_items
from pipeline.sources.table_files import read_table_file
from pipeline.truncate import truncate

RAGGED: Final = "ragged"
"""Why lines of text with another number of values are no rows."""
ID_RANGE: Final = (-INTEGER_LIMIT, INTEGER_LIMIT - 1)
"""From and to which whole numbers are ids as numbers; a column with others is text."""
EXACT: Final = 2**53
"""Numbers up to which every whole one is a float."""


def read_rows(path: Path, stream: Stream, label_delay: int) -> Events:
    """Read the events of a table, each row an interaction and its label.

    A field is in the column of its name. That of ``/courier/id`` is in ``courier.id``, or in the field ``id``
    of the column ``courier`` where its values are objects. Without a column of event ids, an event's id is
    the number of its row, from 0. Without a column of times, the rows are in the order of time, and each
    label comes right before the next event.

    Where interactions are slates, a row is an item and its label. The rows of an event are its slate, in
    their order; what is not of the item is the same in all of them. If one of them cannot be used, none is,
    as a message with an item that cannot be used is no interaction.

    Parameters
    ----------
    path
        A table, see `pipeline.sources.table_files`.
    stream
        Definition of the stream.
    label_delay
        Milliseconds from an interaction to its label, where there is no column of label times.

    Returns
    -------
    Events
        Usable rows by time, and counts of the others: `ragged` (lines of text with another number of values),
        `no_id`, `no_time`, `no_value`, `no_number`,
        `no_feature`, `out_of_range`, `label_before_event`; of slates `differs_in_slate`, `item_twice`,
        `too_many_items`. The frame has the columns of `pipeline.sources.messages.StreamWriter`.

    Raises
    ------
    ConfigError
        A field of a slate's items and one of its message would be in the same column.
    DataError
        There is no such file, it is no such table, or a column is missing.
    """
    refuse_shared_columns(stream)
    table = TableFile(path)
    interactions, labels = stream.interactions, stream.labels
    ids = entity_fields(len(stream.entities))
    known = table.find(labels.time)
    ordered = known is None and table.find(interactions.time) is None
    time = (
        pl.int_range(pl.len(), dtype=pl.Int64) * (label_delay + 1)
        if ordered
        else table.time(interactions.time, interactions.time_unit)
    )
    columns = {
        "event_id": table.ids(interactions.event_id, required=stream.has_slates),
        **{name: table.ids(pointer) for name, pointer in zip(ids, stream.entities.values(), strict=True)},
        "timestamp": time,
        "label_timestamp": time + label_delay if known is None else table.time(labels.time, labels.time_unit),
        "watch_ratio": table.label(labels),
    }
    numbers = {
        f"{name}.{number}": table.number(pointer)
        for name, definition in (("interactions", interactions), ("labels", labels))
        for number, pointer in definition.numbers.items()
    }
    carried = {
        f"interactions.{name}": table.optional_number(pointer)
        for name, pointer in interactions.carried.items()
    }
    if labels.weight is not None:
        numbers[WEIGHT] = table.number(labels.weight)
    if labels.value_kind == "signal":
        columns["signal"] = table.text(labels.value)
    features = {
        f"features.{name}": table.feature(feature)
        for name, feature in stream.features.items()
        if not isinstance(feature, DerivedFeature)
    }
    required = [
        f"features.{name}"
        for name, feature in stream.features.items()
        if not isinstance(feature, DerivedFeature) and feature.missing is None
    ]
    selected = columns | numbers | features | carried
    try:
        raw = table.frame.select(**selected)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path}: {truncate(str(error).splitlines()[0])}") from error
    signed = labels.signals or isinstance(stream.target, RegressionSettings)
    lowest = -HIGHEST_WATCH_RATIO if signed else 0.0
    made = list(checks(["event_id", *ids], list(numbers), required, lowest))
    failures = first_failures(raw, made)
    reasons = dict(enumerate(check.reason for check in made))
    fault = failures.replace_strict(reasons, return_dtype=pl.String).alias("fault")
    if stream.has_slates:
        fault = slate_faults(raw, fault, stream)
    counts = fault.drop_nulls().value_counts().sort("fault").rows()
    frame = raw.filter(fault.is_null())
    frame = with_items(frame, stream) if stream.has_slates else frame.sort("timestamp", maintain_order=True)
    fields = _fields(table, stream, raw.columns) if counts else {}
    found = examples(table.frame, fault, failures, made, fields)
    skipped, left_out = dict(counts), table.file.left_out
    if left_out:
        skipped[RAGGED], found[RAGGED] = left_out, table.file.example
    notes = [table.file.taken_for] if table.file.taken_for else []
    if ordered:
        notes.append(
            f"There is no column for interactions.time, {interactions.time}: rows are in the order of time, "
            "and each label comes before the next event"
        )
    return Events(
        frame,
        raw.height + left_out,
        skipped,
        found,
        ". ".join(notes),
        has_times=not ordered,
        has_label_times=known is not None,
    )


def _fields(table: TableFile, stream: Stream, columns: list[str]) -> dict[str, Field]:
    """Return where each column of rows comes from."""
    interactions, labels = stream.interactions, stream.labels
    pointers = {
        "event_id": ("interactions.event_id", interactions.event_id),
        "timestamp": ("interactions.time", interactions.time),
        "label_timestamp": ("labels.time", labels.time),
        "watch_ratio": ("labels.value", labels.value),
    }
    if table.find(labels.time) is None:
        pointers["label_timestamp"] = pointers["timestamp"]
    if labels.weight is not None:
        pointers[WEIGHT] = ("labels.weight", labels.weight)
    for column, (name, pointer) in zip(
        entity_fields(len(stream.entities)), stream.entities.items(), strict=True
    ):
        pointers[column] = (f"entities.{name}", pointer)
    for kind, definition in (("interactions", interactions), ("labels", labels)):
        for number, pointer in definition.numbers.items():
            pointers[f"{kind}.{number}"] = (f"{kind}.{number}", pointer)
    for name, feature in stream.features.items():
        if not isinstance(feature, DerivedFeature):
            pointers[f"features.{name}"] = (f"features.{name}", feature.field)
    row = pl.int_range(pl.len())
    found = {column: table.find(pointers[column][1]) for column in columns if column in pointers}
    return {column: Field(*pointers[column], row if raw is None else raw) for column, raw in found.items()}


class TableFile:
    """A table, and the columns that pointers lead to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = read_table_file(path)
        self.frame = self.file.frame

    def find(self, pointer: str) -> pl.Expr | None:
        """Return the column of a pointer; None if there is none."""
        parts = parts_of(pointer)
        if ".".join(parts) in self.frame.columns:
            return pl.col(".".join(parts))
        kind: object = self.frame.schema.get(parts[0])
        for part in parts[1:]:
            fields = {field.name: field.dtype for field in kind.fields} if isinstance(kind, pl.Struct) else {}
            kind = fields.get(part)
        if kind is None:
            return None
        return reduce(lambda column, part: column.struct.field(part), parts[1:], pl.col(parts[0]))

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
        within = values.dtype == pl.String or values.drop_nulls().is_between(*ID_RANGE).all()
        return column if within else column.cast(pl.String)

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
        return self.text(definition.value).replace_strict(signals, default=None, return_dtype=pl.Float64)

    def text(self, pointer: str) -> pl.Expr:
        """Return a column of text."""
        return self._existing(pointer).cast(pl.String)

    def feature(self, feature: FieldFeature) -> pl.Expr:
        """Return the column of a feature; nulls where there is no such column and it may be missing."""
        if feature.missing is not None and self.find(feature.field) is None:
            return pl.lit(None)
        return self._existing(feature.field)

    def time(self, pointer: str, unit: TimeUnit) -> pl.Expr:
        """Return a column of times, in milliseconds; what is no time is null."""
        column = self._existing(pointer)
        kind = self.frame.select(column).to_series().dtype
        if kind.is_temporal():
            return column.cast(pl.Datetime("ms")).cast(pl.Int64)
        if unit == "iso8601":
            text = column.cast(pl.String).str.to_datetime(time_unit="ms", time_zone="UTC", strict=False)
            return text.cast(pl.Int64)
        if unit == "s":
            return (column.cast(pl.Float64, strict=False) * 1000).round().cast(pl.Int64, strict=False)
        return column.cast(pl.Int64, strict=False) // (1000 if unit == "us" else 1)

    def _existing(self, pointer: str) -> pl.Expr:
        column = self.find(pointer)
        if column is None:
            there = truncate(", ".join(self.frame.columns))
            raise DataError(f"{self.path}: no column for {pointer}; there are {there}")
        return column


def _are_whole(values: pl.Series) -> bool:
    """Return whether all numbers are whole, and so small that each is exact."""
    known = values.drop_nulls()
    return bool((known.is_between(-EXACT, EXACT) & (known == known.round())).all())
