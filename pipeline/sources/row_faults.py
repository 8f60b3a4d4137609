"""Why rows of a table cannot be used, with the field and an example of each reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import polars as pl

from forks.checks import LARGEST_WEIGHT
from pipeline.config.stream import WEIGHT
from pipeline.sources.kuairec import HIGHEST_WATCH_RATIO, LATEST_TIMESTAMP, LONGEST_DURATION
from pipeline.truncate import shown

UNLABELLED: Final = "unlabelled"
"""The column that says whether no label comes."""


def is_of_label(column: str) -> bool:
    """Return whether a column of rows is of the label.

    Examples
    --------
    >>> is_of_label("label_timestamp"), is_of_label("timestamp")
    (True, False)
    """
    return column in {"label_timestamp", "watch_ratio", "signal", WEIGHT} or column.startswith("labels.")


class Field(NamedTuple):
    """Where a column of rows comes from."""

    setting: str
    """The setting of the definition that says where it is."""
    pointer: str
    raw: pl.Expr
    """Its values as the table has them."""


class Check(NamedTuple):
    """A reason why a row cannot be used, of one column."""

    reason: str
    column: str
    fails: pl.Expr


def checks(
    ids: Sequence[str], numbers: Sequence[str], required: Sequence[str], lowest: float
) -> Iterator[Check]:
    """Yield the checks of rows, in their order: the first that fails is the reason.

    Parameters
    ----------
    ids, numbers, required
        Columns of ids, of numbers that every row has to have, and of such features.
    lowest
        The smallest label.
    """
    times = "timestamp", "label_timestamp"
    for reason, columns in (
        ("no_id", ids),
        ("no_time", times),
        ("no_value", ("watch_ratio",)),
        ("no_number", numbers),
        ("no_feature", required),
    ):
        for column in columns:
            yield Check(reason, column, pl.col(column).is_null())
    ranges = dict.fromkeys(times, (0.0, LATEST_TIMESTAMP - LONGEST_DURATION))
    ranges["watch_ratio"] = lowest, HIGHEST_WATCH_RATIO
    for column in numbers:
        ranges[column] = 0.0, LARGEST_WEIGHT if column == WEIGHT else LONGEST_DURATION
    for column, (least, most) in ranges.items():
        yield Check("out_of_range", column, ~pl.col(column).is_between(least, most))
    late = pl.col("label_timestamp") < pl.col("timestamp")
    yield Check("label_before_event", "label_timestamp", late)


def first_failures(rows: pl.DataFrame, made: Sequence[Check]) -> pl.Series:
    """Return the number of the first check that each row fails; null where it fails none."""
    numbers = [
        pl.when(check.fails & ~pl.col(UNLABELLED) if is_of_label(check.column) else check.fails).then(
            pl.lit(number)
        )
        for number, check in enumerate(made)
    ]
    return rows.select(pl.coalesce(numbers).alias("check"))["check"]


def examples(
    table: pl.DataFrame,
    faults: pl.Series,
    failures: pl.Series,
    made: Sequence[Check],
    fields: Mapping[str, Field],
) -> dict[str, str]:
    """Return the first row of each reason as text: its number from 1, the field and its value.

    Parameters
    ----------
    table
        The rows as the table has them.
    faults
        The reason of each row; null where it can be used.
    failures
        The numbers of `first_failures`.
    made
        The checks.
    fields
        Where each column comes from.
    """
    found = {}
    for reason in faults.drop_nulls().unique().sort():
        numbers = [number for number, check in enumerate(made) if check.reason == reason]
        rows = failures.is_in(numbers).arg_true()
        row = rows[0] if len(rows) else (faults == reason).arg_true()[0]
        field = fields[made[failures[row]].column if len(rows) else "event_id"]
        value = table[row].select(field.raw.alias("value"))["value"][0]
        text = "missing" if value is None else shown(value)
        found[reason] = f"row {row + 1:,}: {field.setting} at {field.pointer} is {text}"
    return found
