"""The columns of a table, as a draft of its definition looks at them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from json import dumps
from textwrap import wrap
from typing import Final

import polars as pl

from pipeline.config.stream import RESERVED
from pipeline.sources.table_files import NOTHING, as_numbers
from pipeline.tools.stream.draft_times import TimeGuess, time_guess
from pipeline.truncate import shown

LONGEST_NAME: Final = 41
"""Characters of a name in a definition, at most."""
LONGEST_SIGNAL: Final = 256
"""Characters of a signal, at most."""
_NUMBERED: Final = re.compile(r"(id|uuid|key|code|no|nr|num|number|zip|sku|order)$", re.IGNORECASE)
"""Names of texts that may be numbers, and are none."""
_OF_PARENT: Final = frozenset({"id", "key", "uuid", "value"})
"""Names of fields that say nothing without that of their object."""


@dataclass(frozen=True, eq=False)
class Column:
    """A column, or a field of a column of objects."""

    pointer: str
    values: pl.Series
    """Some of its values."""
    whole: pl.Series
    """All of them."""
    odd: str = ""
    """What is said of a few values that are no numbers; empty if all are."""

    @property
    def nulls(self) -> bool:
        """Whether any row has none."""
        return bool(self.whole.null_count())

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

    @cached_property
    def time(self) -> TimeGuess | None:
        """How its times are written; None if it has no times."""
        return time_guess(self.whole)


def columns_of(frame: pl.DataFrame, some: pl.DataFrame, parent: str = "") -> Iterator[Column]:
    """Yield the columns of a table, and the fields of those that hold objects.

    Parameters
    ----------
    frame
        All rows.
    some
        The rows whose values are looked at.
    parent
        Pointer to the object that these are fields of.
    """
    for series, values in zip(frame, some, strict=True):
        if not series.name:
            continue  # no pointer leads there
        pointer = f"{parent}/{series.name.replace('~', '~0').replace('/', '~1')}"
        if isinstance(series.dtype, pl.Struct):
            yield from columns_of(series.struct.unnest(), values.struct.unnest(), pointer)
        elif not series.dtype.is_nested():
            yield _column(pointer, values, series)


def _column(pointer: str, values: pl.Series, whole: pl.Series) -> Column:
    """Return a column, as numbers where nearly all texts are some."""
    text = whole.dtype == pl.String and not _NUMBERED.search(pointer)
    numbers = as_numbers(whole) if text else None
    if numbers is None:
        return Column(pointer, values, whole)
    known = ~whole.str.to_lowercase().is_in(NOTHING).fill_null(value=True)
    odd = whole.filter(numbers.is_null() & known)
    counted = f"{len(odd):,} values are no numbers" if len(odd) > 1 else "One value is no number"
    some = values.cast(pl.Float64, strict=False)
    return Column(pointer, some, numbers, f"{counted}, such as {one_line(shown(odd[0]))}")


def lists_of(frame: pl.DataFrame, parent: str = "") -> Iterator[str]:
    """Yield the pointers to columns of lists."""
    for series in frame:
        pointer = f"{parent}/{series.name.replace('~', '~0').replace('/', '~1')}"
        if isinstance(series.dtype, pl.Struct):
            yield from lists_of(series.struct.unnest(), pointer)
        elif series.dtype.is_nested():
            yield pointer


def wrapped(pointers: Iterable[str]) -> Iterator[str]:
    """Yield comments with pointers, in lines that are not long.

    Examples
    --------
    >>> [*wrapped(["/a", "/b"])]
    ['#   /a, /b']
    """
    yield from wrap(
        ", ".join(map(one_line, pointers)),
        100,
        initial_indent="#   ",
        subsequent_indent="#   ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def is_id(column: Column) -> bool:
    return column.values.dtype == pl.String or column.values.dtype.is_integer()


def is_unique(column: Column) -> bool:
    return column.distinct == len(column.values)


def is_binary(column: Column) -> bool:
    dtype = column.values.dtype
    return dtype == pl.Boolean or (dtype.is_numeric() and set(column.values.drop_nulls().unique()) <= {0, 1})


def is_signal(column: Column) -> bool:
    """Whether there are two values, of text or of numbers that are not 0 and 1."""
    values = column.values.drop_nulls()
    if column.distinct != 2 or is_binary(column):
        return False
    if values.dtype == pl.String:
        return bool(values.str.len_chars().is_between(1, LONGEST_SIGNAL).all())
    return values.dtype.is_integer()


def quoted(text: str) -> str:
    r"""Return a text as a string of TOML, in one line.

    Examples
    --------
    >>> print(quoted('a "b"\n'))
    "a \"b\"\n"
    """
    return dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def one_line(text: str) -> str:
    r"""Return a text for a comment: without what ends a line.

    Examples
    --------
    >>> print(one_line("/a b\nc"))
    /a b\nc
    """
    return quoted(text)[1:-1]


class Names:
    """Names of a definition: no two are the same, and none is that of a field of outputs.

    Examples
    --------
    >>> names = Names()
    >>> names.take("user"), names.take("user"), names.take("score")
    ('user', 'user_2', 'score_value')
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str) -> str:
        """Return a name like the one that is wanted."""
        begin = f"{wanted}_value" if wanted in RESERVED else wanted
        name, number = begin[:LONGEST_NAME], 1
        while name in self._taken or name in RESERVED:
            number += 1
            name = f"{begin[: LONGEST_NAME - 4]}_{number}"
        self._taken.add(name)
        return name
