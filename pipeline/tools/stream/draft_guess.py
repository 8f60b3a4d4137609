"""Guess what the columns of a table are: ids, times, the label, and what may be features."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from pipeline.config.times import TimeSettings
from pipeline.errors import DataError
from pipeline.sources.kuairec import HIGHEST_WATCH_RATIO
from pipeline.sources.table_columns import milliseconds_of
from pipeline.tools.stream.draft_columns import Column, is_binary, is_id, is_signal, is_unique
from pipeline.tools.stream.draft_times import TimeGuess, format_guess, is_clock
from pipeline.truncate import shown, truncate

WITHOUT_ID: Final = 200
"""At most one of so many rows may be without the id of an entity, as it cannot be used then."""
MOSTLY: Final = 0.95
"""Share of the rows in which a label is known after its event."""
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
"""Names that say what a column may be."""
_PROPENSITY: Final = re.compile(r"^(?!target).*propensit|(action|logging|policy)_?prob", re.IGNORECASE)
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


class Guess(NamedTuple):
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
    known: Column | None
    """The time at which the label was known."""
    clock: Column | None
    """The times of the day, where the time of events is the day alone."""
    labels: Sequence[Column]
    propensity: Column | None
    """The probability with which what is shown was chosen."""
    others: Sequence[Column]
    """Fields that may be features."""
    columns: Sequence[Column]
    """All of them."""
    lists: Sequence[str] = ()
    """Pointers to columns of lists."""


def guess_columns(path: Path, columns: Sequence[Column], known: Known) -> Guess:
    """Return what columns may be, given what is known of some of them.

    Raises
    ------
    DataError
        What is known does not fit the columns, or the format of the times has to be known.
    """
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
        some = ", ".join(map(shown, label.values.drop_nulls().unique().sort().head(3)))
        raise DataError(
            f"{path}: --label {known.label}: it has {label.distinct:,} different values of the type "
            f"{label.values.dtype}{f', such as {some}' if some else ''}; a label is true or false, one of "
            "two values, or a number"
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
        (each for each in others if each not in events and _may_be_label(each) and not _is_number_of(each)),
        key=lambda each: (
            not each.name.startswith("label"),
            not _LABEL.search(each.name),
            each.pointer != columns[-1].pointer,
            not is_binary(each),
        ),
    )
    same = [each.pointer for each in others if each.distinct < 2 and _LABEL.search(each.name)]
    if label is None and same and not (labels and _LABEL.search(labels[0].name)):
        raise DataError(
            f"{path}: {same[0]} looks like the label, but has one value alone. Name another one with --label"
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
    chances = (each for each in others if _PROPENSITY.search(each.name) and _is_probability(each))
    propensity = next((each for each in chances if each not in labels[:1]), None)
    used = {
        each.pointer
        for each in (
            *events,
            *entities,
            *times,
            *labels[:1],
            *(each for each in (clock, propensity) if each is not None),
        )
    }
    features = [each for each in others if each.pointer not in used]
    labelled = times[1:] if guess is not None else []  # rows in their order have no times, nor have labels
    later = (each for each in labelled if _KNOWN.search(each.pointer) and _is_later(times[0], each))
    return Guess(
        events,
        entities,
        more_ids,
        times,
        guess,
        next(later, None),
        clock,
        labels,
        propensity,
        features,
        columns,
    )


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


def _is_later(time: Column, known: Column) -> bool:
    """Whether one time is nearly always after another."""
    span = span_of(time, known)
    return span is None or bool((span.drop_nulls() >= 0).mean() or MOSTLY <= 0.0)


def span_of(time: Column, known: Column) -> pl.Series | None:
    """Return the milliseconds from one time to another; None if either is not known to be one."""
    times = [
        milliseconds_of(
            each.values,
            TimeSettings(
                time_unit=guess.unit,
                time_format=guess.format,
                utc_offset=None if guess.zoned else "+00:00",
            ),
        )
        for each in (time, known)
        if (guess := each.time) is not None
    ]
    return times[1] - times[0] if len(times) > 1 else None


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


def _may_be_entity(column: Column) -> bool:
    """Whether there are ids that come back, but few rows without: numbers only of such a name."""
    values, pointer = column.values, column.pointer
    named = bool(_ID.search(pointer) or _NUMBERED.search(pointer))
    text = values.dtype == pl.String and not (_UNNAMED.search(pointer) or _TIME.search(pointer))
    some = not is_unique(column) and column.distinct > 1
    return is_id(column) and some and (named or text) and WITHOUT_ID * values.null_count() <= len(values)


def _is_probability(column: Column) -> bool:
    """Whether numbers are above 0, and 1 at most."""
    values = column.values.drop_nulls()
    return values.dtype.is_numeric() and bool(((values > 0) & (values <= 1)).all())


def _is_number_of(column: Column) -> bool:
    """Whether numbers are ids by their name, and not a class."""
    return bool(_ID.search(column.pointer)) and column.values.dtype.is_numeric() and not is_binary(column)


def _may_be_label(column: Column) -> bool:
    """Whether there are true and false, two values, or numbers."""
    values = column.values.drop_nulls()
    if column.distinct < 2 or not values.dtype.is_numeric():
        return column.distinct > 1 and (values.dtype == pl.Boolean or is_signal(column))
    return bool(values.cast(pl.Float64).is_between(-HIGHEST_WATCH_RATIO, HIGHEST_WATCH_RATIO).all())


def _find(path: Path, columns: Sequence[Column], option: str, name: str) -> Column:
    """Return a column that is known by its name or pointer."""
    for each in columns:
        if name in {each.pointer, each.pointer.removeprefix("/")}:
            return each
    raise DataError(f"{path}: {option} {name}: there is no such column. There are {names_of(columns)}")


def names_of(columns: Sequence[Column]) -> str:
    """Return the pointers to columns as text, cut if it is long."""
    return truncate(", ".join(each.pointer for each in columns))


def _example(column: Column) -> str:
    some = column.values.drop_nulls()
    return shown(some[0]) if len(some) else "nothing"
