"""Read the events of any stream from a table: CSV, Parquet, or one JSON object a line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import polars as pl

from pipeline.config.durations import duration_text
from pipeline.config.stream import WEIGHT, Stream
from pipeline.config.stream_features import DerivedFeature
from pipeline.config.target_settings import RegressionSettings
from pipeline.errors import DataError
from pipeline.records.entities import entity_fields
from pipeline.sources.kuairec import HIGHEST_WATCH_RATIO, Events
from pipeline.sources.row_faults import (
    UNLABELLED,
    Check,
    Field,
    checks,
    examples,
    first_failures,
    is_of_label,
)
from pipeline.sources.slate_rows import refuse_shared_columns, slate_faults, with_items
from pipeline.sources.table_columns import TableFile
from pipeline.sources.table_files import TableText, read_table_file
from pipeline.truncate import shown, truncate

RAGGED: Final = "ragged"
"""Why lines of text with another number of values are no rows."""
SECOND: Final = "second_label"
"""Why labels of a table of their own are no rows: their event has an earlier one."""
NO_EVENT: Final = "no_event"
"""The same: there is no event of their id."""


def read_rows(path: Path, stream: Stream, label_delay: int, labels_path: Path | None = None) -> Events:
    """Read the events of a table, each row an interaction and its label.

    A field is in the column of its name. That of ``/courier/id`` is in ``courier.id``, or in the field ``id``
    of the column ``courier`` where its values are objects. Without a column of event ids, an event's id is
    the number of its row, from 0. Without a column of times, the rows are in the order of time, and each
    label comes right before the next event. Where the label or its time is empty, no label comes.

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
    labels_path
        A table of labels with the ids of their events; None where they are in the same table. Of the labels
        of an event, or of an item, the first counts.

    Returns
    -------
    Events
        Usable rows by time, and counts of the others: `ragged` (lines of text with another number of values),
        `no_id`, `no_time`, `no_value`, `no_number`,
        `no_feature`, `out_of_range`, `label_before_event`; of slates `differs_in_slate`, `item_twice`,
        `too_many_items`; of a table of labels `second_label` and `no_event`. The frame has the columns of
        `pipeline.sources.messages.StreamWriter`; `label_timestamp` is null where no label comes.

    Raises
    ------
    ConfigError
        A field of a slate's items and one of its message would be in the same column.
    DataError
        There is no such file, it is no such table, a column is missing, or no row has a label.
    """
    refuse_shared_columns(stream)
    text = read_table_file(path)
    skipped, found = _ragged(text)
    notes = [text.taken_for] if text.taken_for else []
    table = known = TableFile(path, text.frame)
    if labels_path is not None:
        table, known, of_labels = _with_labels(table, labels_path, stream)
        skipped, found = skipped | of_labels[0], found | of_labels[1]
    interactions, labels = stream.interactions, stream.labels
    ordered = known.find(labels.time) is None and table.find(interactions.time) is None
    if ordered:
        notes.append(
            f"There is no column for interactions.time, {interactions.time}: rows are in the order of time, "
            "and each label comes before the next event"
        )
    elif known.find(labels.time) is None:
        delay = duration_text(label_delay)
        notes.append(f"There is no column for labels.time, {labels.time}: each label comes {delay} later")
    selected = _columns(table, known, stream, label_delay, ordered=ordered)
    try:
        raw = table.frame.select(**selected)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path}: {truncate(str(error).splitlines()[0])}") from error
    made = _checks(stream, raw.columns)
    failures = first_failures(raw, made)
    reasons = dict(enumerate(check.reason for check in made))
    fault = failures.replace_strict(reasons, return_dtype=pl.String).alias("fault")
    if stream.has_slates:
        fault = slate_faults(raw, fault, stream)
    counts = fault.drop_nulls().value_counts().sort("fault").rows()
    frame = raw.filter(fault.is_null()).with_columns(
        pl.when(~pl.col(UNLABELLED)).then(pl.col("label_timestamp"))
    )
    without = int(frame[UNLABELLED].sum())
    if frame.height and raw[UNLABELLED].all():
        raise DataError(f"{known.path}: no row has a label: {labels.value} is empty, or the label's time is")
    if without:
        notes.append(f"{without:,} rows have no label: their interactions come alone")
    frame = frame.drop(UNLABELLED)
    frame = with_items(frame, stream) if stream.has_slates else frame.sort("timestamp", maintain_order=True)
    fields = _fields(table, known, stream, raw.columns) if counts else {}
    found |= examples(table.frame, fault, failures, made, fields)
    left_out = sum(skipped.values())
    return Events(
        frame,
        raw.height + left_out,
        skipped | dict(counts),
        found,
        ". ".join(notes),
        has_times=not ordered,
        has_label_times=known.find(labels.time) is not None,
    )


def _ragged(text: TableText) -> tuple[dict[str, int], dict[str, str]]:
    """Return how many lines of a text were left out, and the first of them, by reason."""
    return ({RAGGED: text.left_out}, {RAGGED: text.example}) if text.left_out else ({}, {})


def _with_labels(
    table: TableFile, path: Path, stream: Stream
) -> tuple[TableFile, TableFile, tuple[dict[str, int], dict[str, str]]]:
    """Return a table with the labels of another, these as rows of it, and which of them are left out."""
    text = read_table_file(path)
    skipped, found = _ragged(text)
    items = [[*stream.entities.values()][number] for number in stream.item_entities]
    own, other = [stream.interactions.event_id, *items], [stream.labels.event_id, *items]
    labels = TableFile(path, text.frame)
    keys = labels.keys(other)
    known = keys.is_in(table.keys(own).implode()).fill_null(value=False)
    second, lost = ~keys.is_first_distinct(), ~known
    for reason, rows in ((SECOND, second & ~lost), (NO_EVENT, lost)):
        if rows.any():
            row = rows.arg_max() or 0
            skipped[reason] = int(rows.sum())
            found[reason] = f"{path.name}, row {row + 1:,}: {shown(keys[row])}"
    kept = TableFile(path, text.frame.filter(~second & ~lost))
    return *table.joined(own, kept, other), (skipped, found)


def _columns(
    table: TableFile, known: TableFile, stream: Stream, label_delay: int, *, ordered: bool
) -> dict[str, pl.Expr]:
    """Return the columns of rows: those of `StreamWriter`, and whether no label comes."""
    interactions, labels = stream.interactions, stream.labels
    time = (
        pl.int_range(pl.len(), dtype=pl.Int64) * (label_delay + 1)
        if ordered
        else table.time(interactions.time, interactions, interactions.time_of_day)
    )
    value, unlabelled, label_time = known.label(labels), known.says_nothing(labels.value), time + label_delay
    unlabelled &= value.is_null()
    if known.find(labels.time) is not None:
        label_time = known.time(labels.time, labels, labels.time_of_day)
        unlabelled |= known.says_nothing(labels.time)
    columns = {
        "event_id": table.ids(interactions.event_id, required=stream.has_slates or known is not table),
        **{
            name: table.ids(pointer)
            for name, pointer in zip(
                entity_fields(len(stream.entities)), stream.entities.values(), strict=True
            )
        },
        "timestamp": time,
        "label_timestamp": label_time,
        "watch_ratio": value,
        UNLABELLED: unlabelled,
    }
    for name, source, definition in (("interactions", table, interactions), ("labels", known, labels)):
        for number, pointer in definition.numbers.items():
            columns[f"{name}.{number}"] = source.number(pointer)
    if labels.weight is not None:
        columns[WEIGHT] = known.number(labels.weight)
    if labels.value_kind == "signal":
        columns["signal"] = known.text(labels.value, "" if "" in labels.signals else None)
    for name, feature in stream.features.items():
        if not isinstance(feature, DerivedFeature):
            columns[f"features.{name}"] = table.feature(feature)
    for name, pointer in interactions.carried.items():
        columns[f"interactions.{name}"] = table.optional_number(pointer)
    return columns


def _checks(stream: Stream, columns: Sequence[str]) -> list[Check]:
    """Return the checks of the columns of rows."""
    numbers = [
        *(f"interactions.{name}" for name in stream.interactions.numbers),
        *(f"labels.{name}" for name in stream.labels.numbers),
        *(name for name in columns if name == WEIGHT),
    ]
    required = [
        f"features.{name}"
        for name, feature in stream.features.items()
        if not isinstance(feature, DerivedFeature) and feature.missing is None
    ]
    signed = stream.labels.signals or isinstance(stream.target, RegressionSettings)
    ids = ["event_id", *entity_fields(len(stream.entities))]
    return list(checks(ids, numbers, required, -HIGHEST_WATCH_RATIO if signed else 0.0))


def _fields(table: TableFile, known: TableFile, stream: Stream, columns: list[str]) -> dict[str, Field]:
    """Return where each column of rows comes from."""
    interactions, labels = stream.interactions, stream.labels
    pointers = {
        "event_id": ("interactions.event_id", interactions.event_id),
        "timestamp": ("interactions.time", interactions.time),
        "label_timestamp": ("labels.time", labels.time),
        "watch_ratio": ("labels.value", labels.value),
    }
    if known.find(labels.time) is None:
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
    found = {
        column: (known if is_of_label(column) else table).find(pointers[column][1])
        for column in columns
        if column in pointers
    }
    return {column: Field(*pointers[column], row if raw is None else raw) for column, raw in found.items()}
