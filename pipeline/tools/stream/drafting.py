"""Draft a definition of a stream from a table of its events, for people to look through and to edit."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from pipeline.config.stream import RESERVED, Stream, TimeUnit
from pipeline.errors import DataError
from pipeline.sources.table_files import read_table_file
from pipeline.tools.stream.checking import unit_of
from pipeline.truncate import truncate

ROWS: Final = 10_000
"""Rows that are looked at."""
MAX_FEATURES: Final = 20
"""Features that are named, at most."""
MAX_CATEGORIES: Final = 100
"""Texts of a column that may be a category, at most."""
_TIME: Final = re.compile(r"time|date|(^|_)(ts|at|ms)($|_)", re.IGNORECASE)
_KNOWN: Final = re.compile(r"label|known|end|arriv|finish|deliver|done|clos", re.IGNORECASE)
_ID: Final = re.compile(r"id$|uuid|key$|/event|/row|/order", re.IGNORECASE)
_ACTOR: Final = re.compile(
    r"user|customer|client|account|courier|driver|player|device|session|member", re.IGNORECASE
)
_LABEL: Final = re.compile(
    r"click|like|view|watch|conver|purchas|bought|fraud|success|on_time|target|rating|(?<!du)ratio",
    re.IGNORECASE,
)
"""Names that say what a column may be."""
_OF_PARENT: Final = frozenset({"id", "key", "uuid", "value"})
"""Names of fields that say nothing without that of their object."""


class Column(NamedTuple):
    """A column, or a field of a column of objects."""

    pointer: str
    values: pl.Series

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


def draft(path: Path, name: str) -> str:
    """Return a definition of a stream in TOML, with what else may be meant in comments.

    Parameters
    ----------
    path
        Table of events, see `pipeline.sources.rows.read_rows`.
    name
        Name of the stream.

    Raises
    ------
    DataError
        It is no such table, or it has no columns that may be a time and a label.
    """
    table = read_table_file(path)
    frame = table.frame
    # Not the first rows: a table may be sorted by the label.
    columns = list(_columns(frame.sample(min(ROWS, frame.height), seed=0)))
    if not columns or not len(columns[0].values):
        raise DataError(f"{path}: there are no rows to look at")
    found = _guess(columns)
    lacking = [what for what, there in (("a time", found.times), ("a label", found.labels)) if not there]
    if lacking:
        there = truncate(", ".join(each.pointer for each in columns))
        raise DataError(f"{path}: no column looks like {' nor '.join(lacking)}; there are {there}")
    said = [f"# {table.taken_for}"] if table.taken_for else []
    text = "\n".join([*said, *_lines(name, found)]) + "\n"
    Stream.model_validate(tomllib.loads(text))
    return text


class _Guess(NamedTuple):
    """What columns may be, the likeliest first."""

    events: Sequence[Column]
    """Ids of events."""
    ids: Sequence[Column]
    """Ids of users and items."""
    times: Sequence[Column]
    labels: Sequence[Column]
    others: Sequence[Column]
    """Fields that may be features."""


def _guess(columns: Sequence[Column]) -> _Guess:
    times = sorted((each for each in columns if each.unit), key=lambda each: not _TIME.search(each.pointer))
    others = [each for each in columns if each not in times]
    events = [each for each in others if _is_id(each) and _is_unique(each) and _ID.search(each.pointer)]
    ids = sorted(
        (each for each in others if _is_id(each) and not _is_unique(each) and each.distinct > 1),
        key=lambda each: (not _ID.search(each.pointer), not _ACTOR.search(each.pointer), -each.distinct),
    )
    entities = sorted(ids[:2], key=lambda each: not _ACTOR.search(each.pointer))
    labels = sorted(
        (each for each in others if each not in (*entities, *events) and _may_be_label(each)),
        key=lambda each: (
            not each.name.startswith("label"),
            not _LABEL.search(each.name),
            not _is_binary(each),
        ),
    )
    more_ids = [each for each in ids[2:] if _ID.search(each.pointer)]
    used = {each.pointer for each in (*events, *entities, *more_ids, *times, *labels[:1])}
    features = [
        each
        for each in others
        if each.pointer not in used and not _LABEL.search(each.name) and _may_be_feature(each)
    ]
    return _Guess(events, [*entities, *more_ids], times, labels, features)


def _lines(name: str, found: _Guess) -> Iterator[str]:
    event = found.events[0].pointer if found.events else "/event_id"
    time, label = found.times[0], found.labels[0]
    known = next((each for each in found.times[1:] if _KNOWN.search(each.pointer)), None)
    above, cap = (0.5, 1.0) if _is_binary(label) else _amounts(label)
    yield f'name = "{name}"'
    yield ""
    if found.ids:
        yield "# The ids that both messages have; the first is the messages' key."
        yield from _other_candidates("ids", found.ids[2:])
        yield "[entities]"
        first, *second = found.ids[:2]
        yield f'{_unlike(first.name)} = "{first.pointer}"'
        for each in second:
            yield f'{_unlike(each.name)}{"_2" * (each.name == first.name)} = "{each.pointer}"'
    else:
        yield "# No column looks like an id: the events' ids are the messages' keys."
    yield ""
    yield "[interactions]"
    yield f'topic = "{name}-interactions"'
    if not found.events:
        yield "# No column looks like an id and differs in each row: a replay numbers the rows."
    yield f'event_id = "{event}"'
    yield from _other_candidates("times", [each for each in found.times[1:] if each is not known])
    yield f'time = "{time.pointer}"'
    yield f'time_unit = "{time.unit}"'
    yield ""
    yield "[labels]"
    yield f'topic = "{name}-labels"'
    yield f'event_id = "{event}"'
    if known is None:
        yield "# No column looks like the time of labels: a replay sends them --label-delay later."
    yield f'time = "{known.pointer if known else "/label_time"}"'
    yield f'time_unit = "{known.unit if known else time.unit}"'
    yield from _other_candidates("labels", [each for each in found.labels[1:] if _is_binary(each)])
    yield f'value = "{label.pointer}"'
    if label.values.dtype == pl.Boolean:
        yield 'value_kind = "boolean"'
    yield ""
    yield "[target]"
    yield f'name = "{_unlike(label.name)}"'
    if not _is_binary(label):
        yield "# The median, and what one in twenty exceeds."
    yield f"above = {above:g}"
    yield f"cap = {cap:g}"
    yield f"scale = {above or 1.0:g}"
    yield from _feature_lines(found)


def _feature_lines(found: _Guess) -> Iterator[str]:
    """Yield features as comments: whether a field is known when the event happens, no table tells."""
    yield ""
    yield "# Further features. Take those that are known when an event happens, and no others: a field that"
    yield "# is only known later, such as how long a video was played, would tell the label."
    comment = "# " if found.ids else ""
    yield f"{comment}[features]"
    yield f'{comment}hour = {{ kind = "hour", utc_offset = "+00:00" }}'
    for each in found.others[:MAX_FEATURES]:
        kind = "number"
        if each.values.dtype == pl.Boolean:
            kind = "boolean"
        elif each.values.dtype == pl.String:
            kind = "category"
        missing = {"number": "0.0", "boolean": "false", "category": '"unknown"'}[kind]
        told = ", indicator = true" if kind == "number" else ""
        said = f", missing = {missing}{told}" if each.values.null_count() else ""
        yield f'# {_unlike(each.name)} = {{ kind = "{kind}", field = "{each.pointer}"{said} }}'


def _may_be_feature(column: Column) -> bool:
    """Whether there are numbers, true and false, or few texts."""
    dtype = column.values.dtype
    few = 1 < column.distinct <= MAX_CATEGORIES
    return dtype.is_numeric() or dtype == pl.Boolean or (dtype == pl.String and few)


def _columns(frame: pl.DataFrame, parent: str = "") -> Iterator[Column]:
    """Yield the columns of a table, and the fields of those that hold objects."""
    for series in frame:
        pointer = f"{parent}/{series.name.replace('~', '~0').replace('/', '~1')}"
        if isinstance(series.dtype, pl.Struct):
            yield from _columns(series.struct.unnest(), pointer)
        elif not series.dtype.is_nested():
            yield Column(pointer, series)


def _is_id(column: Column) -> bool:
    return column.values.dtype == pl.String or column.values.dtype.is_integer()


def _is_unique(column: Column) -> bool:
    return column.distinct == len(column.values)


def _may_be_label(column: Column) -> bool:
    """Whether there are true and false, or at least two numbers, from 0 on."""
    dtype = column.values.dtype
    if dtype == pl.Boolean or not dtype.is_numeric():
        return bool(dtype == pl.Boolean)
    return column.distinct > 1 and not (column.values < 0).any()


def _is_binary(column: Column) -> bool:
    return column.values.dtype == pl.Boolean or set(column.values.drop_nulls().unique()) <= {0, 1}


def _amounts(column: Column) -> tuple[float, float]:
    """Return a threshold and a cap for a column of numbers."""
    numbers = column.values.drop_nulls().cast(pl.Float64)
    median = numbers.median()
    most = numbers.quantile(0.95)
    above = float(median) if isinstance(median, int | float) else 0.0
    return above, max(float(most or 0.0), above) or 1.0


def _unlike(name: str) -> str:
    """Return a name that no other field of outputs has."""
    return f"{name}_value" if name in RESERVED else name


def _other_candidates(what: str, columns: Sequence[Column]) -> list[str]:
    if not columns:
        return []
    return [f"# Other {what}: {', '.join(each.pointer for each in columns[:8])}"]
