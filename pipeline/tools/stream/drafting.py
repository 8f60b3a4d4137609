"""Draft a definition of a stream from a table of its events, for people to look through and to edit."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

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
    is_id,
    is_signal,
    is_unique,
    one_line,
    quoted,
)
from pipeline.tools.stream.draft_features import feature_lines
from pipeline.tools.stream.draft_times import TimeGuess, format_guess, is_clock
from pipeline.truncate import shown, truncate

ROWS: Final = 10_000
"""Rows that are looked at."""
WITHOUT_ID: Final = 200
"""At most one of so many rows may be without the id of an entity, as it cannot be used then."""
SAME_TIME: Final = 10
"""Rows with the same time, on average, from which on it does not say their order."""
_TIME: Final = re.compile(r"time|date|hour|day|when|created|(^|[/_])(ts|at|ms|dt)($|_)", re.IGNORECASE)
_KNOWN: Final = re.compile(
    r"label|known|end|arriv|finish|deliver|done|clos|drop_?off|return|resolv", re.IGNORECASE
)
_NO_EVENT: Final = re.compile(r"birth|expir|dob|updat|modif", re.IGNORECASE)
"""Names of times that are not those of events."""
_CLOCK: Final = re.compile(r"/(hr|hours?|hour_of_day|time|time_of_day|clock)$", re.IGNORECASE)
_ID: Final = re.compile(r"id$|uuid|key$|/event|/row|/order", re.IGNORECASE)
_ACTORS: Final = "user|customer|client|account|courier|driver|player|device|session|member"
_ACTOR: Final = re.compile(_ACTORS, re.IGNORECASE)
_NUMBERED: Final = re.compile(rf"({_ACTORS})_?(id|key|no|nr|num|number|code)?$", re.IGNORECASE)
_LABEL: Final = re.compile(
    r"click|like|view|watch|conver|purchas|bought|fraud|success|on_time|target|rating|(?<!du)ratio"
    r"|^label|^y$|^class$|^outcome|^cnt$|^fare$|minutes|time_taken",
    re.IGNORECASE,
)
_RATIO: Final = re.compile(r"rating|(?<!du)ratio|score|stars", re.IGNORECASE)
"""Names that say what a column may be; numbers of the last kind are above a threshold or not."""
_POSITIVE: Final = frozenset({"yes", "y", "true", "t", "up", "positive", "pos", "spam", "fraud", "won", "1"})
"""Texts of the positive class, in lower case."""
_UNNAMED: Final = re.compile(r"/column_\d+$")


class Known(NamedTuple):
    """What is known of a table: names of columns, or pointers."""

    label: str | None = None
    time: str | None = None
    event_id: str | None = None
    entities: Sequence[str] = ()
    time_format: str | None = None
    """The format of the times, as for strptime."""


NOTHING_KNOWN: Final = Known()


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
    found = _guess(path, columns, known)
    if not found.labels:
        raise DataError(
            f"{path}: no column looks like a label; name it with --label. There are {_names(columns)}"
        )
    said = [f"# {table.taken_for}"] if table.taken_for else []
    text = "\n".join([*said, *_lines(name, found)]) + "\n"
    Stream.model_validate(tomllib.loads(text))
    return text


class _Guess(NamedTuple):
    """What columns may be, the likeliest first."""

    events: Sequence[Column]
    """Ids of events."""
    entities: Sequence[Column]
    """Ids of users and items."""
    ids: Sequence[Column]
    """Further ids."""
    times: Sequence[Column]
    """The first has the time of events, if `time` says how it is written."""
    time: TimeGuess | None
    """How the time of events is written; None if nothing has it."""
    clock: Column | None
    """The times of the day, where the time of events is the day alone."""
    labels: Sequence[Column]
    others: Sequence[Column]
    """Fields that may be features."""
    columns: Sequence[Column]
    """All of them."""


def _names(columns: Sequence[Column]) -> str:
    return truncate(", ".join(each.pointer for each in columns))


def _find(path: Path, columns: Sequence[Column], option: str, name: str) -> Column:
    """Return a column that is known by its name or pointer."""
    for each in columns:
        if name in {each.pointer, each.pointer.removeprefix("/")}:
            return each
    raise DataError(f"{path}: {option} {name}: there is no such column. There are {_names(columns)}")


def _guess(path: Path, columns: Sequence[Column], known: Known) -> _Guess:
    """Return what columns may be, given what is known of some of them."""
    label, time, event = (
        None if name is None else _find(path, columns, option, name)
        for option, name in (
            ("--label", known.label),
            ("--time", known.time),
            ("--event-id", known.event_id),
        )
    )
    said = [_find(path, columns, "--entity", name) for name in known.entities]
    fixed = [each.pointer for each in (label, time, event, *said) if each is not None]
    if label is not None and not _may_be_label(label):
        raise DataError(
            f"{path}: --label {known.label}: it has {label.distinct:,} different values of the type "
            f"{label.values.dtype}; a label is true or false, one of two values, or a number"
        )
    free = [each for each in columns if each.pointer not in fixed]
    times = _times(path, free, time, known)
    guess = _how(path, times[0], known) if times else None
    clocks = [each for each in free if _CLOCK.search(each.pointer) and is_clock(each.whole)]
    clock = clocks[0] if clocks and guess is not None and not guess.has_clock else None
    if time is None and clock is None and times and _is_coarse(times[0]):
        guess = None
    others = [each for each in free if each.pointer not in {found.pointer for found in times}]
    events = [each for each in others if is_id(each) and is_unique(each) and _ID.search(each.pointer)]
    events = events if event is None else [event]
    labels = sorted(
        (each for each in others if each not in events and _may_be_label(each)),
        key=lambda each: (
            not each.name.startswith("label"),
            not _LABEL.search(each.name),
            each.pointer != columns[-1].pointer,
            not is_binary(each),
        ),
    )
    labels = labels if label is None else [label, *labels]
    ids = sorted(
        (each for each in others if each not in labels[:1] and _may_be_entity(each)),
        key=lambda each: (not _ID.search(each.pointer), not _ACTOR.search(each.pointer), -each.distinct),
    )
    entities = said or sorted(ids[:2], key=lambda each: not _ACTOR.search(each.pointer))
    ids = ids if not said else [*said, *(each for each in ids if each not in said)]
    labels = [each for each in labels if each not in entities]
    more_ids = [each for each in ids[len(entities) :] if _ID.search(each.pointer)]
    used = {each.pointer for each in (*events, *entities, *times, *labels[:1], *([clock] if clock else []))}
    features = [each for each in others if each.pointer not in used]
    return _Guess(events, entities, more_ids, times, guess, clock, labels, features, columns)


def _times(path: Path, free: Sequence[Column], time: Column | None, known: Known) -> list[Column]:
    """Return the columns of times, that of events first."""
    if time is not None and known.time_format is None and time.time is None:
        raise DataError(
            f"{path}: --time {known.time}: {_example(time)} is no time that is known. Say how it is written, "
            "with --time-format, such as '%d.%m.%Y %H:%M'"
        )
    found = [each for each in free if each.time is not None and _named_as_time(each)]
    if known.time_format is not None and not found and time is None:
        found = [each for each in free if each.values.dtype == pl.String or _TIME.search(each.pointer)]
        found = [each for each in found if format_guess(each.whole, known.time_format) is not None]
    found.sort(
        key=lambda each: (
            bool(_NO_EVENT.search(each.pointer)),
            not _TIME.search(each.pointer),
            bool(_KNOWN.search(each.pointer)),
            each.time is not None and not each.time.has_clock,
        )
    )
    return found if time is None else [time, *found]


def _named_as_time(column: Column) -> bool:
    """Whether numbers may be times by their name, too: digits of dates are named so, ids are not."""
    if not column.values.dtype.is_numeric() or _TIME.search(column.pointer):
        return True
    digits = column.time is not None and column.time.unit == "text"
    return bool(_UNNAMED.search(column.pointer)) or not (digits or _ID.search(column.pointer))


def _is_coarse(time: Column) -> bool:
    """Whether many rows have the same time: no label of one could be learned before the next."""
    return time.whole.n_unique() * SAME_TIME <= len(time.whole)


def _how(path: Path, time: Column, known: Known) -> TimeGuess | None:
    """Return how the time of events is written."""
    if known.time_format is None:
        guess = time.time
        if guess is not None and guess.other is not None:
            raise DataError(
                f"{path}: {time.pointer} is written as {guess.format} or as {guess.other}: no value, such as "
                f"{_example(time)}, says which. Say it with --time-format '{guess.format}' or "
                f"--time-format '{guess.other}'"
            )
        return guess
    try:
        guess = format_guess(time.whole, known.time_format)
    except ValueError as error:
        raise DataError(f"--time-format {known.time_format}: {error}") from None
    if guess is None:
        raise DataError(
            f"{path}: --time-format {known.time_format}: {time.pointer} is not written so, such as "
            f"{_example(time)}"
        )
    return guess


def _lines(name: str, found: _Guess) -> Iterator[str]:
    event = found.events[0].pointer if found.events else _new_pointer("/event_id", found.columns)
    label, names = found.labels[0], Names()
    time = found.times[0].pointer if found.time else _new_pointer("/time", found.columns)
    guess = found.time or TimeGuess("ms")
    known = next((each for each in found.times[1:] if _KNOWN.search(each.pointer)), None)
    yield f'name = "{name}"'
    yield ""
    if found.entities:
        yield "# The ids that both messages have; the first is the messages' key."
        yield from _other_candidates("ids", found.ids)
        yield "[entities]"
        for each in found.entities:
            yield f"{names.take(each.name)} = {quoted(each.pointer)}"
    else:
        yield "# No column looks like an id: the events' ids are the messages' keys."
    yield ""
    yield "[interactions]"
    yield f'topic = "{name}-interactions"'
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
    yield ""
    yield "[labels]"
    yield f'topic = "{name}-labels"'
    yield f"event_id = {quoted(event)}"
    if known is None:
        yield "# No column looks like the time of labels: a replay sends them --label-delay later."
    label_time = known.pointer if known else _new_pointer("/label_time", found.columns)
    yield f"time = {quoted(label_time)}"
    yield from _time_lines(_how_labels(known, guess), None)
    yield from _other_candidates("labels", [each for each in found.labels[1:] if is_binary(each)])
    yield f"value = {quoted(label.pointer)}"
    if label.values.dtype == pl.Boolean:
        yield 'value_kind = "boolean"'
    elif is_signal(label):
        yield 'value_kind = "signal"'
        yield "# Which of the two is positive is a guess."
        signals = ", ".join(f"{quoted(text)} = {count:g}" for text, count in _signals(label).items())
        yield f"signals = {{ {signals} }}"
    yield ""
    yield "[target]"
    yield from _target_lines(label, names.take(label.name))
    yield from feature_lines(found.others, label, names, hour=_hour(found))


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


def _hour(found: _Guess) -> str | None:
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
    yield "# The median, how far labels usually are from it, and how far the furthest is of any account."
    yield f"offset = {median:g}"
    yield f"scale = {deviation or 1.0:g}"
    yield f"cap = {min(4.0 * max(high - median, median - low, deviation), HIGHEST_WATCH_RATIO) or 1.0:g}"


def _new_pointer(pointer: str, columns: Sequence[Column]) -> str:
    """Return a pointer that leads to no column."""
    while any(each.pointer == pointer for each in columns):
        pointer = f"{pointer}_"
    return pointer


def _example(column: Column) -> str:
    some = column.values.drop_nulls()
    return shown(some[0]) if len(some) else "nothing"


def _signals(column: Column) -> dict[str, float]:
    """Return what each of two values counts as: the rarer one is positive, if no name or number says more."""
    counts = column.values.drop_nulls().value_counts(sort=True).rows()
    if column.values.dtype.is_integer():
        high = max(value for value, _ in counts)
    else:
        named = [value for value, _ in counts if value.lower() in _POSITIVE]
        high = named[0] if len(named) == 1 else counts[-1][0]
    return {str(value): float(value == high) for value, _ in sorted(counts)}


def _may_be_entity(column: Column) -> bool:
    """Whether there are ids that come back, but few rows without: numbers only of such a name."""
    values, pointer = column.values, column.pointer
    named = bool(_ID.search(pointer) or _NUMBERED.search(pointer))
    text = values.dtype == pl.String and not (_UNNAMED.search(pointer) or _TIME.search(pointer))
    some = not is_unique(column) and column.distinct > 1
    return is_id(column) and some and (named or text) and WITHOUT_ID * values.null_count() <= len(values)


def _may_be_label(column: Column) -> bool:
    """Whether there are true and false, two values, or numbers."""
    values = column.values.drop_nulls()
    if column.distinct < 2 or not values.dtype.is_numeric():
        return column.distinct > 1 and (values.dtype == pl.Boolean or is_signal(column))
    return bool(values.cast(pl.Float64).is_between(-HIGHEST_WATCH_RATIO, HIGHEST_WATCH_RATIO).all())


def _other_candidates(what: str, columns: Sequence[Column]) -> list[str]:
    if not columns:
        return []
    return [f"# Other {what}: {', '.join(one_line(each.pointer) for each in columns[:8])}"]
