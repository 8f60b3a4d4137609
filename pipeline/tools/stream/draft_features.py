"""Draft the features of a stream from the columns of its table, and point out what would tell the label."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

import polars as pl

from forks.arrays import FloatArray
from pipeline.tools.stream.draft_columns import (
    Column,
    Names,
    is_binary,
    is_signal,
    is_unique,
    one_line,
    quoted,
    wrapped,
)
from pipeline.tools.stream.draft_guess import Guess, span_of
from pipeline.tools.stream.leaks import correlation, numbers_of, standardised, tells

MAX_FEATURES: Final = 60
"""Features that are drafted, at most."""
FEW: Final = 32
"""Different whole numbers that may be codes of a category, at most."""
SOME: Final = 5_000
"""The same, of a column whose name says that it has codes."""
CORRELATED: Final = 0.95
"""Correlation with the label from which on a number is taken for the label."""
SPAN: Final = 0.999
"""Correlation from which on a number is the time from an event to its label."""
SKEWED: Final = 10.0
"""How many times its median a number exceeds once in twenty, where its logarithm is taken."""
WORDS: Final = 3.0
"""Words of a text, on average, from which on it is no category."""
_CODE: Final = re.compile(
    r"(^|_)(c\d+|position|rank|slot|code|type|zip|model|category|class|id|kind|hour|day|weekday)($|_)"
)
_LATER: Final = re.compile(
    r"play|watch|dwell|click|like|view|conver|purchas|bought|success|on_time|target|(?<!du)ratio"
    r"|actual|finish|arriv|outcome|result|label"
)


def feature_lines(guess: Guess, names: Names, entities: Sequence[str], *, hour: str | None) -> Iterator[str]:
    """Yield the features in TOML, those that may tell the label as comments.

    Parameters
    ----------
    guess
        What columns may be.
    names
        The names that are taken.
    entities
        The names of the entities.
    hour
        The encoding of the hour of events; None where it is not known.
    """
    columns = guess.others
    found = [each for each in columns if _may_be_feature(each)]
    told = leaks(found, guess.labels[0])
    if guess.time is not None and guess.known is not None:
        told |= _spans(found, guess.times[0], guess.known)
    yield ""
    yield "# Keep those that are known when an event happens, and no others: a field that is only known"
    yield "# later, such as how long a video was played, would tell the label."
    yield "[features]"
    if hour is not None or len(told) == len(found):
        encoding = ', encoding = "category"' * (hour == "category")
        yield f'{names.take("hour_of_day")} = {{ kind = "hour", utc_offset = "+00:00"{encoding} }}'
    for each in found[:MAX_FEATURES]:
        name = names.take(each.name)
        reason = told.get(each.pointer)
        if each.odd:
            yield f"# {each.odd}:"
        if reason is not None:
            yield f"# Left out, as {reason}:"
        yield f"{'# ' * (reason is not None)}{name} = {{ {_settings(each)} }}"
    if entities:
        yield "# Ids have running means. Weights of their own may help, too, as where a few machines differ:"
    for entity in entities:
        yield f'# {names.take(f"id_of_{entity}")} = {{ kind = "id", entity = "{entity}" }}'
    constant = [each for each in columns if each not in found and each.distinct < 2]
    other = [each for each in columns if each not in found and each.distinct >= 2]
    for reason, left in (
        ("values are all the same", constant),
        ("values all differ, or are neither numbers nor text", other),
        (f"there are {MAX_FEATURES} before", found[MAX_FEATURES:]),
    ):
        if left:
            yield f"# Left out, as {reason}:"
            yield from wrapped(each.pointer for each in left)
    if guess.lists:
        yield "# Left out, as values are lists, which are features as vectors of numbers alone:"
        yield from wrapped(guess.lists)


def leaks(columns: Sequence[Column], label: Column) -> dict[str, str]:
    """Return why columns may tell the label, by pointer.

    A sum of two columns that is the label, a number that goes with it, and a name of what happens later.
    """
    found = {
        each.pointer: "its name says that it is known later" for each in columns if _LATER.search(each.name)
    }
    y = _numbers(label)
    standard = None if y is None else standardised(y)
    if y is None or standard is None:
        return found
    values = {
        each.pointer: numbers
        for each in columns
        if each.values.dtype.is_numeric() or each.values.dtype == pl.Boolean
        if (numbers := _numbers(each)) is not None
    }
    for each in columns:
        if tells(each.values, y, CORRELATED) is not None:
            found[each.pointer] = "it goes with the label"
    for (first, a), (second, b) in combinations(values.items(), 2):
        if first in found and second in found:
            continue
        if correlation(a + b, standard) >= 1.0 - 1e-9:
            found[first] = found[second] = f"{one_line(first)} and {one_line(second)} make the label"
    return found


def _spans(columns: Sequence[Column], time: Column, known: Column) -> dict[str, str]:
    """Return why columns are the time from an event to its label, by pointer."""
    span = span_of(time, known)
    spans = None if span is None else numbers_of(span)
    standard = None if spans is None else standardised(spans)
    if standard is None:
        return {}
    reason = f"it is the time from {one_line(time.pointer)} to {one_line(known.pointer)}"
    return {
        each.pointer: reason
        for each in columns
        if each.values.dtype.is_numeric()
        if (numbers := _numbers(each)) is not None
        if correlation(numbers, standard) >= SPAN
    }


def _numbers(column: Column) -> FloatArray | None:
    """Return a column as finite numbers, 0 where there is none; two values of a signal are 0 and 1."""
    values = column.values
    return numbers_of(values == values.drop_nulls()[0] if is_signal(column) else values)


def _may_be_feature(column: Column) -> bool:
    """Whether there are numbers, true and false, or texts that come back or have several words."""
    dtype = column.values.dtype
    if column.distinct < 2 and not column.nulls:
        return False
    if dtype == pl.String:
        return not is_unique(column) or _is_text(column)
    if dtype == pl.Boolean or dtype.is_float():
        return True
    return dtype.is_integer() and not is_unique(column)


def _is_text(column: Column) -> bool:
    words = column.values.drop_nulls().str.count_matches(r"\S+").mean()
    return isinstance(words, int | float) and words >= WORDS and column.distinct > FEW


def _settings(column: Column) -> str:
    """Return the settings of a feature, in TOML."""
    dtype, missing = column.values.dtype, column.nulls
    field = f"field = {quoted(column.pointer)}"
    if dtype == pl.Boolean:
        return f'kind = "boolean", {field}' + ", missing = false" * missing
    if dtype == pl.String:
        kind = "text" if _is_text(column) else "category"
        return f'kind = "{kind}", {field}' + ', missing = "unknown"' * missing
    codes = SOME if _CODE.search(column.name) else FEW
    if dtype.is_integer() and not is_binary(column) and column.distinct <= codes:
        return f'kind = "category", {field}' + ', missing = "unknown"' * missing
    logarithm = ", log = true" * _is_skewed(column)
    return f'kind = "number", {field}{logarithm}' + ", missing = 0.0, indicator = true" * missing


def _is_skewed(column: Column) -> bool:
    numbers = column.values.drop_nulls().cast(pl.Float64)
    median, high = (float(numbers.quantile(each) or 0.0) for each in (0.5, 0.95))
    return float(numbers.min() or 0.0) >= 0.0 and high > SKEWED * max(median, 0.5)  # type: ignore[arg-type]  # a float of floats
