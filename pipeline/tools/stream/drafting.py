"""Draft a definition of a stream from a table of its events, for people to look through and to edit."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from pipeline.config.stream import Stream
from pipeline.errors import DataError
from pipeline.sources.kuairec import HIGHEST_WATCH_RATIO
from pipeline.sources.table_files import read_table_file
from pipeline.tools.stream.draft_columns import (
    Column,
    Names,
    columns_of,
    is_binary,
    is_signal,
    lists_of,
    one_line,
    quoted,
)
from pipeline.tools.stream.draft_features import feature_lines
from pipeline.tools.stream.draft_guess import NOTHING_KNOWN, Guess, Known, guess_columns, names_of
from pipeline.tools.stream.draft_times import TimeGuess

ROWS: Final = 10_000
"""Rows that are looked at."""
_RATIO: Final = re.compile(r"rating|(?<!du)ratio|score|stars", re.IGNORECASE)
"""Names of labels that are above a threshold or not."""
_POSITIVE: Final = frozenset({"yes", "y", "true", "t", "up", "positive", "pos", "spam", "fraud", "won", "1"})
"""Texts of the positive class, in lower case."""


def draft(path: Path, name: str, known: Known = NOTHING_KNOWN) -> str:
    """Return a definition of a stream in TOML, with what else may be meant in comments.

    Parameters
    ----------
    path
        Table of events, see `pipeline.sources.rows.read_rows`.
    name
        Name of the stream.
    known
        What need not be guessed.

    Raises
    ------
    DataError
        It is no such table, a column that is known is not there, or none may be a label.
    """
    table = read_table_file(path)
    frame = table.frame
    # Not the first rows: a table may be sorted by the label.
    columns = list(columns_of(frame, frame.sample(min(ROWS, frame.height), seed=0)))
    if not columns or not len(columns[0].values):
        raise DataError(f"{path}: there are no rows to look at")
    found = guess_columns(path, columns, known)._replace(lists=[*lists_of(frame)])
    if not found.labels:
        raise DataError(
            f"{path}: no column looks like a label; name it with --label. There are {names_of(columns)}"
        )
    said = [f"# {table.taken_for}"] if table.taken_for else []
    text = "\n".join([*said, *_lines(name, found)]) + "\n"
    Stream.model_validate(tomllib.loads(text))
    return text


def _lines(name: str, found: Guess) -> Iterator[str]:
    label, names = found.labels[0], Names()
    entities = [names.take(each.name) for each in found.entities]
    yield f'name = "{name}"'
    yield ""
    if found.entities:
        yield "# The ids that both messages have; the first is the messages' key."
        yield from _other_candidates("ids", found.ids)
        yield "[entities]"
        for entity, each in zip(entities, found.entities, strict=True):
            yield f"{entity} = {quoted(each.pointer)}"
    else:
        yield "# No column looks like an id (--entity names one): the events' ids are the messages' keys."
    yield ""
    yield "[interactions]"
    yield f'topic = "{name}-interactions"'
    yield from _interaction_lines(found)
    yield ""
    yield "[labels]"
    yield f'topic = "{name}-labels"'
    yield from _label_lines(found)
    yield ""
    yield "[target]"
    yield from _target_lines(label, names.take(label.name))
    yield from feature_lines(found, names, entities, hour=_hour(found))


def _event_id(found: Guess) -> str:
    return found.events[0].pointer if found.events else _new_pointer("/event_id", found.columns)


def _interaction_lines(found: Guess) -> Iterator[str]:
    """Yield where the fields of interactions are."""
    event, guess, known = _event_id(found), found.time or TimeGuess("ms"), found.known
    time = found.times[0].pointer if found.time else _new_pointer("/time", found.columns)
    if not found.events:
        yield "# No column looks like an id and differs in each row: a replay numbers the rows."
    yield f"event_id = {quoted(event)}"
    yield from _other_candidates("times", [each for each in found.times[1:] if each is not known])
    if found.times and not found.time:
        same = one_line(found.times[0].pointer)
        yield f"# Rows share the same {same}: in a table, rows are in the order of time. Messages need one."
    elif not found.time:
        yield "# No column looks like a time: in a table, rows are in the order of time. Messages need one."
    yield f"time = {quoted(time)}"
    yield from _time_lines(guess, found.clock)
    if found.propensity is not None:
        yield "# The probability with which what is shown was chosen: no feature, but carried for reports."
        yield f"propensity = {quoted(found.propensity.pointer)}"


def _label_lines(found: Guess) -> Iterator[str]:
    """Yield where the fields of labels are."""
    event, guess, known = _event_id(found), found.time or TimeGuess("ms"), found.known
    label = found.labels[0]
    yield f"event_id = {quoted(event)}"
    if known is None:
        yield "# No column looks like the time of labels: a replay sends them --label-delay later."
    label_time = known.pointer if known else _new_pointer("/label_time", found.columns)
    yield f"time = {quoted(label_time)}"
    yield from _time_lines(_how_labels(known, guess), None)
    yield from _other_candidates("labels", [each for each in found.labels[1:] if is_binary(each)])
    if label.nulls and (is_binary(label) or is_signal(label)):
        none = label.whole.null_count()
        yield f"# {none:,} rows have none. In the end each counts as negative, if forks.toml does not say"
        yield '# join.on_missing = "drop".'
    if label.odd:
        yield f"# {label.odd}."
    yield f"value = {quoted(label.pointer)}"
    if label.values.dtype == pl.Boolean:
        yield 'value_kind = "boolean"'
    elif is_signal(label):
        yield 'value_kind = "signal"'
        yield "# Which of the two is positive is a guess."
        signals = ", ".join(f"{quoted(text)} = {count:g}" for text, count in _signals(label).items())
        yield f"signals = {{ {signals} }}"


def _time_lines(guess: TimeGuess, clock: Column | None) -> Iterator[str]:
    yield f'time_unit = "{guess.unit}"'
    if guess.format is not None:
        yield f"time_format = {quoted(guess.format)}"
    if not guess.zoned:
        yield "# The values do not say their zone: UTC is a guess."
        yield 'utc_offset = "+00:00"'
    if clock is not None:
        yield f"time_of_day = {quoted(clock.pointer)}"
    elif not guess.has_clock:
        yield "# Only the day is known: the events of a day have the same time."


def _hour(found: Guess) -> str | None:
    """Return the encoding of the hour of events as a feature; None where it is not known."""
    if found.clock is not None:
        return "category"
    return "cyclic" if found.time is not None and found.time.has_clock else None


def _how_labels(known: Column | None, guess: TimeGuess) -> TimeGuess:
    """Return how the times of labels are written, given how those of events are."""
    if known is None or known.time is None:
        return TimeGuess("iso8601") if guess.unit == "text" or not guess.zoned else TimeGuess(guess.unit)
    return guess if known.time.other == guess.format is not None else known.time


def _target_lines(label: Column, name: str) -> Iterator[str]:
    """Yield what labels mean: a class, or a number."""
    if is_binary(label) or is_signal(label):
        yield from (f'name = "{name}"', "above = 0.5", "cap = 1", "scale = 0.5")
        return
    numbers = label.values.drop_nulls().cast(pl.Float64)
    low, median, high = (float(numbers.quantile(each, "linear") or 0.0) for each in (0.05, 0.5, 0.95))
    if _RATIO.search(label.name) and not (numbers < 0.0).any():
        yield f'name = "{name}"'
        yield "# The median, and what one in twenty exceeds."
        yield f"above = {median:g}"
        yield f"cap = {max(high, median) or 1.0:g}"
        yield f"scale = {median or 1.0:g}"
        return
    deviation = float((numbers - median).abs().mean() or 0.0)  # type: ignore[arg-type]  # a float of floats
    yield 'kind = "regression"'
    yield f'name = "{name}"'
    yield "# The median, how far labels usually are from it, and from how far on they count as that far."
    yield f"offset = {median:g}"
    yield f"scale = {deviation or 1.0:g}"
    yield f"cap = {min(4.0 * max(high - median, median - low, deviation), HIGHEST_WATCH_RATIO) or 1.0:g}"


def _new_pointer(pointer: str, columns: Sequence[Column]) -> str:
    """Return a pointer that leads to no column."""
    while any(each.pointer == pointer for each in columns):
        pointer = f"{pointer}_"
    return pointer


def _signals(column: Column) -> dict[str, float]:
    """Return what each of two values counts as: the rarer one is positive, if no name or number says more."""
    counts = column.values.drop_nulls().value_counts(sort=True).rows()
    if column.values.dtype.is_integer():
        high = max(value for value, _ in counts)
    else:
        named = [value for value, _ in counts if value.lower() in _POSITIVE]
        high = named[0] if len(named) == 1 else counts[-1][0]
    return {str(value): float(value == high) for value, _ in sorted(counts)}


def _other_candidates(what: str, columns: Sequence[Column]) -> list[str]:
    if not columns:
        return []
    return [f"# Other {what}: {', '.join(one_line(each.pointer) for each in columns[:8])}"]
