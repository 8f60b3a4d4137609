"""Make slates of the rows of a table: the rows of an event are the items that were shown together."""

from __future__ import annotations

import polars as pl

from pipeline.config.pointer import parts_of
from pipeline.config.stream import Stream
from pipeline.errors import ConfigError
from pipeline.records.entities import entity_fields
from pipeline.sources.kuairec import ITEMS
from pipeline.sources.messages import item_columns
from pipeline.sources.row_faults import UNLABELLED, is_of_label


def refuse_shared_columns(stream: Stream) -> None:
    """Refuse a stream in whose tables a field of items would be in the column of one of the message.

    Raises
    ------
    ConfigError
        There is such a field. The message names both.
    """
    columns: dict[str, str] = {}
    of_item = []
    for name, pointer in stream.pointers(stream.interactions):
        if stream.is_item_field(name):
            of_item.append((name, ".".join(parts_of(pointer))))
        else:
            columns[".".join(parts_of(pointer))] = name
    for name, column in of_item:
        if column in columns:
            raise ConfigError(
                f"stream.{name} is of each item, and {columns[column]} of the message: in a table, both "
                f"would be the column {column}. Send messages with a producer of your own"
            )


def slate_faults(rows: pl.DataFrame, fault: pl.Series, stream: Stream) -> pl.Series:
    """Return the reason why each row cannot be used, the same for all rows of a slate; null where it can.

    Parameters
    ----------
    rows
        All rows.
    fault
        The reason of each row by itself.
    stream
        Definition of the stream.
    """
    own = item_columns(stream)
    same = [
        name for name in rows.columns if name not in {*own, UNLABELLED, "event_id"} and not is_of_label(name)
    ]
    ids = [name for name in entity_fields(len(stream.entities)) if name in own]
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).first()).any() for name in same)
    by_slate = (
        rows.with_columns(fault.alias("fault"))
        .group_by("event_id", maintain_order=True)
        .agg(
            pl.when(pl.col("fault").is_not_null().any())
            .then(pl.col("fault").drop_nulls().first())
            .when(differs)
            .then(pl.lit("differs_in_slate"))
            .when(pl.struct(ids).is_duplicated().any())
            .then(pl.lit("item_twice"))
            .when(pl.len() > stream.interactions.max_items)
            .then(pl.lit("too_many_items"))
            .alias("fault")
        )
    )
    return rows.select("event_id").join(
        by_slate, on="event_id", how="left", nulls_equal=True, maintain_order="left"
    )["fault"]


def with_items(rows: pl.DataFrame, stream: Stream) -> pl.DataFrame:
    """Return usable rows by time, those of a slate together, with the column `ITEMS`.

    Parameters
    ----------
    rows
        Rows of whole slates.
    stream
        Definition of the stream.
    """
    slates = rows.group_by("event_id", maintain_order=True).agg(
        pl.struct(item_columns(stream)).alias(ITEMS), pl.first("timestamp").alias("at")
    )
    slates = slates.sort("at", maintain_order=True).with_row_index("slate")
    joined = rows.join(slates.drop("at"), on="event_id", maintain_order="left")
    joined = joined.sort("slate", maintain_order=True)
    first = pl.col("slate").is_first_distinct()
    return joined.with_columns(pl.when(first).then(pl.col(ITEMS)).alias(ITEMS)).drop("slate")
