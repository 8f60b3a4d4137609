"""Read the interactions of KuaiRec's files: clean them, give them ids, and sort them by time.

Gao et al., "KuaiRec: A Fully-observed Dataset and Insights for Evaluating Recommender Systems", CIKM 2022.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import polars as pl

from pipeline.errors import DataError
from pipeline.input_files import bounded_lines, refuse_large
from pipeline.sources.kuairec_files import DEFAULT_MATRIX, TABLES
from pipeline.truncate import shown, truncate

COLUMNS: Final[dict[str, type[pl.DataType]]] = {
    "user_id": pl.Int64,
    "video_id": pl.Int64,
    "play_duration": pl.Float64,
    "video_duration": pl.Float64,
    "timestamp": pl.Float64,
    "watch_ratio": pl.Float64,
}
"""Columns that are read of an interactions file, and their types."""

# What the records accept, see `pipeline.records.outputs`.
LATEST_TIMESTAMP: Final = 2**53
LONGEST_DURATION: Final = 1e12
HIGHEST_WATCH_RATIO: Final = 1e9

ITEMS: Final = "items"
"""Column of the items of a slate, in the first of its rows."""

IDENTITY: Final = ("user_id", "video_id", "timestamp")
"""Columns that an event's id is made of."""


@dataclass(frozen=True)
class Events:
    """The usable interactions of a file, with their labels.

    Attributes
    ----------
    frame
        One row for each interaction, by timestamp and then by position in the file. `event_id` is a
        string, `user_id` and `video_id` are integers, `timestamp` and `label_timestamp` integer
        milliseconds since 1970, the latter null where no label comes, `play_duration` and `video_duration`
        milliseconds (float), and `watch_ratio` is a float. Where interactions are slates, a row is an item
        with its label. Those of a slate stand together, and the first has all items in the column `ITEMS`, a
        list of objects, which is null in the others.
    rows
        Rows of the file, usable or not.
    skipped
        Rows that cannot be used, by the first reason that applies: `no_id`, `no_timestamp`,
        `no_duration`, `no_watch_ratio`, `out_of_range` (negative, not a number, or beyond what the
        records accept).
    examples
        The first row of each reason as text, of a stream's table.
    taken_for
        What the file was taken for, as a sentence; empty where its format says all.
    has_times
        Whether the times are those of events, not of an order of rows.
    has_label_times
        Whether those of labels are not a delay after these.
    """

    frame: pl.DataFrame
    rows: int
    skipped: dict[str, int]
    examples: Mapping[str, str] = field(default_factory=dict)
    taken_for: str = ""
    has_times: bool = True
    has_label_times: bool = True

    def __len__(self) -> int:
        """Return the number of usable interactions; of slates, that of their items."""
        return self.frame.height

    @property
    def labels(self) -> int:
        """The number of labels that come."""
        return len(self) - self.frame["label_timestamp"].null_count()

    def later_than(self, window: int) -> int:
        """Return the number of labels that come more than so many milliseconds after their events."""
        return int((self.frame["label_timestamp"] - self.frame["timestamp"] > window).sum())

    @property
    def reasons(self) -> str:
        """The reasons why rows cannot be used, with the numbers of these rows, as text."""
        return describe_skipped(self.skipped)

    def first(self, count: int | None) -> Events:
        """Keep the first `count` interactions and their labels; all of them if `count` is None."""
        if count is None:
            return self
        if ITEMS not in self.frame.columns:
            return replace(self, frame=self.frame.head(count))
        return replace(self, frame=self.frame.filter(pl.col(ITEMS).is_not_null().cum_sum() <= count))


def describe_skipped(skipped: Mapping[str, int]) -> str:
    """Return numbers of rows by the reason why they cannot be used as text.

    Examples
    --------
    >>> describe_skipped({"no_time": 2, "out_of_range": 1_000})
    '2 no time, 1,000 out of range'
    """
    return ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in skipped.items())


def read_events(path: Path, matrix: str = DEFAULT_MATRIX) -> Events:
    """Read the interactions of a CSV file in KuaiRec's columns, or of a folder of such files.

    A label becomes known when the play has ended, at `timestamp + play_duration`.

    An event's id is `USER-VIDEO-TIMESTAMP`, and `USER-VIDEO-TIMESTAMP#2`, `#3` ... for further rows with the
    same user, video and millisecond (KuaiRec's big matrix has many). So the id is the same on every run and
    in every part of the file, and a reader can find its row in the file. It depends on no other rows than
    earlier ones with the same user, video and millisecond.

    Parameters
    ----------
    path
        A CSV file, or a folder that holds `matrix`.
    matrix
        The file to read where `path` is a folder.

    Returns
    -------
    Events
        The usable interactions, and counts of the others.

    Raises
    ------
    DataError
        There is no such file, a column is missing, or a value is not a number.
    """
    file = _find(path, matrix)
    raw = _read(file)
    fault = _fault_expression()
    fault_of_row = raw.select(fault.alias("fault"))["fault"]
    counts = fault_of_row.drop_nulls().value_counts().sort("fault").rows()
    clean = raw.filter(fault_of_row.is_null()).with_columns(
        (pl.col("timestamp") * 1000).round().cast(pl.Int64)
    )
    ordered = clean.sort("timestamp", maintain_order=True)
    frame = ordered.select(
        _event_ids(ordered),
        "user_id",
        "video_id",
        "timestamp",
        (pl.col("timestamp") + pl.col("play_duration").round().cast(pl.Int64)).alias("label_timestamp"),
        "play_duration",
        "video_duration",
        "watch_ratio",
    )
    return Events(frame, raw.height, dict(counts))


def tables_beside(path: Path) -> dict[str, Path]:
    """Find which of KuaiRec's tables are in a folder, or beside a CSV file, by `features` setting."""
    folder = path if path.is_dir() else path.parent
    return {name: folder / file for name, file in TABLES.items() if (folder / file).is_file()}


def _find(path: Path, matrix: str) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise DataError(f"{path}: there is no such file or folder; give a CSV of KuaiRec or its data folder")
    file = path / matrix
    if not file.is_file():
        there = ", ".join(sorted(entry.name for entry in path.glob("*.csv"))) or "no CSV file at all"
        raise DataError(f"{path}: there is no {matrix} (there is {there}); choose a file with --matrix")
    return file


def _read(file: Path) -> pl.DataFrame:
    refuse_large(file)
    try:
        with file.open(encoding="utf-8", errors="replace", newline="\n") as text:
            first_line = next(bounded_lines(file, text), "")
        if first_line.count("\r") > 1:
            raise DataError(f"{file}, line 1: lines have to end with a line feed, not with a carriage return")
        scan = pl.scan_csv(file, schema_overrides=COLUMNS)
        present = scan.collect_schema().names()
        missing = [column for column in COLUMNS if column not in present]
        if missing:
            raise DataError(
                f"{file}, line 1: no column {', '.join(missing)}; expected are {', '.join(COLUMNS)}, "
                f"found are {truncate(', '.join(present))}"
            )
        return scan.select(list(COLUMNS)).collect()
    except pl.exceptions.NoDataError as error:
        raise DataError(f"{file}: the file is empty; expected is a line of column names and rows") from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DataError(_explain(file, error)) from error
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from error


def _explain(file: Path, error: BaseException) -> str:
    """Find line and column of the value that polars could not read; its own message lacks them."""
    message = f"{file}: not a CSV file as expected: {truncate(str(error).splitlines()[0])}"
    try:
        raw = (
            pl.scan_csv(file, infer_schema=False)
            .select(list(COLUMNS))
            .with_row_index("line", offset=2)
            .collect()
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return message
    for column, dtype in COLUMNS.items():
        bad = pl.col(column).is_not_null() & pl.col(column).cast(dtype, strict=False).is_null()
        found = raw.filter(bad).head(1)
        if found.height:
            line, value = found.select("line", column).row(0)
            kind = "an integer" if dtype is pl.Int64 else "a number"
            return f"{file}, line {line}, column {column}: {shown(value)} is not {kind}"
    return message


def _fault_expression() -> pl.Expr:
    """Return the expression for the reason why a row cannot be used; null where it can."""

    def outside(column: str, limit: float) -> pl.Expr:
        return ~pl.col(column).is_between(0, limit) | pl.col(column).is_nan()

    return (
        pl.when(pl.any_horizontal(pl.col("user_id", "video_id").is_null()))
        .then(pl.lit("no_id"))
        .when(pl.col("timestamp").is_null())
        .then(pl.lit("no_timestamp"))
        .when(pl.any_horizontal(pl.col("play_duration", "video_duration").is_null()))
        .then(pl.lit("no_duration"))
        .when(pl.col("watch_ratio").is_null())
        .then(pl.lit("no_watch_ratio"))
        .when(
            outside("timestamp", (LATEST_TIMESTAMP - LONGEST_DURATION) / 1000)
            | outside("play_duration", LONGEST_DURATION)
            | outside("video_duration", LONGEST_DURATION)
            | outside("watch_ratio", HIGHEST_WATCH_RATIO)
        )
        .then(pl.lit("out_of_range"))
    )


def _event_ids(ordered: pl.DataFrame) -> pl.Series:
    """Make the events' ids; rows with the same user, video and millisecond get a number."""
    names = ordered.select(pl.format("{}-{}-{}", *IDENTITY).alias("event_id")).to_series()
    alike = ordered.select(pl.struct(IDENTITY).is_duplicated()).to_series()
    number = ordered.filter(alike).select(pl.int_range(1, pl.len() + 1).over(IDENTITY)).to_series()
    again = number > 1
    numbered = pl.select(
        pl.format("{}#{}", names.filter(alike).filter(again), number.filter(again))
    ).to_series()
    return names.scatter(alike.arg_true().filter(again), numbered)
