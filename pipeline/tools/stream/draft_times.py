"""What the times of a column look like: their unit or format, their zone, and whether they are days alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, NamedTuple

import polars as pl

from pipeline.config.section import TimeUnit
from pipeline.config.times import DAY, Moment, TimeFormat
from pipeline.records.input_times import LONGEST_TIME, iso_moment, time_of_day
from pipeline.sources.table_files import NOTHING

SOME: Final = 100
"""Different values that have to fit before all are looked at."""
FIRST: Final = 5
"""Different values of which one has to begin with a date."""
FITTING: Final = 0.9
"""Share of the different values that have to fit: rows with others are lost, and told."""
YEARS: Final = (1980, 2100)
"""Years of numbers that may be times: from and to."""
_YEAR: Final = 366
_DATES: Final = (
    *("%Y/%m/%d", "%Y.%m.%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y"),
    *("%d-%b-%y", "%d/%b/%Y", "%a %d %b %Y", "%A, %B %d, %Y"),
)
_CLOCKS: Final = ("", "%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "%H")
_BETWEEN: Final = (" ", "T", ":", ", ")
_COMPACT: Final = ("%Y%m%d", "%y%m%d%H", "%Y%m%d%H", "%Y%m%d%H%M", "%Y%m%d%H%M%S", "%y%m%d")
_UNITS: Final[tuple[tuple[TimeUnit, int], ...]] = (
    ("s", 1),
    ("ms", 1_000),
    ("us", 1_000_000),
    ("ns", 1_000_000_000),
)


class TimeGuess(NamedTuple):
    """How times are written."""

    unit: TimeUnit
    format: str | None = None
    zoned: bool = True
    """Whether each says its zone."""
    has_clock: bool = True
    """Whether they are more than days."""
    other: str | None = None
    """Another format that all values fit as well: whether days or months come first is not known."""


def time_guess(values: pl.Series) -> TimeGuess | None:
    """Return how the times of a column are written; None if it has no times.

    Parameters
    ----------
    values
        The whole column, in the order of its rows.

    Examples
    --------
    >>> time_guess(pl.Series(["1/2/2025 9:30", "1/13/2025 21:05"]))
    TimeGuess(unit='text', format='%m/%d/%Y %H:%M', zoned=False, has_clock=True, other=None)
    >>> time_guess(pl.Series([1_772_366_400]))
    TimeGuess(unit='s', format=None, zoned=True, has_clock=True, other=None)
    """
    dtype, known = values.dtype, values.drop_nulls()
    if dtype == pl.String:
        known = known.filter(~known.str.to_lowercase().is_in(NOTHING))
    if not len(known) or dtype == pl.Boolean:
        return None
    if dtype.is_temporal():
        if not isinstance(dtype, pl.Datetime | pl.Date):
            return None
        zoned = isinstance(dtype, pl.Datetime) and dtype.time_zone is not None
        return TimeGuess("iso8601", zoned=zoned, has_clock=isinstance(dtype, pl.Datetime))
    if dtype.is_numeric():
        return _numbers(known)
    return _texts(known) if dtype == pl.String else None


def format_guess(values: pl.Series, text: str) -> TimeGuess | None:
    """Return how times are written, given their format; None if not nearly all values fit it.

    Raises
    ------
    ValueError
        It is no format.
    """
    pattern = TimeFormat(text)
    if not _fits(_different(values.drop_nulls()), pattern.parse, pattern.width):
        return None
    return TimeGuess("text", text, pattern.has_zone, pattern.has_time)


def is_clock(values: pl.Series) -> bool:
    """Return whether a column has times of the day: whole hours, or text.

    Examples
    --------
    >>> is_clock(pl.Series([0, 12, 23])), is_clock(pl.Series(["9:30", "21:05"])), is_clock(pl.Series([1, 24]))
    (True, True, False)
    """
    known = values.drop_nulls()
    if not len(known) or known.dtype == pl.Boolean:
        return False
    if known.dtype == pl.Time:
        return True
    if not (known.dtype.is_integer() or known.dtype == pl.String):
        return False
    for value in known.unique().head(10 * SOME):
        try:
            time_of_day(value)
        except ValueError:
            return False
    return True


def _different(values: pl.Series) -> list[str]:
    """Return the different values as text, in the order of the rows."""
    if values.dtype.is_float():
        return []
    return [str(value) for value in values.unique(maintain_order=True)]


def _numbers(values: pl.Series) -> TimeGuess | None:
    """Return how numbers say times: as digits of dates, or since 1970."""
    if values.dtype.is_integer():
        texts = _different(values)
        for text in _COMPACT:
            pattern = TimeFormat(text)
            if _fits(texts, _of_years(pattern)):
                return TimeGuess("text", text, zoned=False, has_clock=pattern.has_time)
    first, last = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in YEARS)
    for unit, factor in _UNITS:
        within = values.is_between(first * factor, last * factor).mean()
        if isinstance(within, float) and within >= FITTING and (unit == "s" or _whole(values)):
            return TimeGuess(unit)
    return None


def _whole(values: pl.Series) -> bool:
    return values.dtype.is_integer() or bool((values == values.round()).all())


def _of_years(pattern: TimeFormat) -> Callable[[str], Moment]:
    """Return what reads a time in the years of which numbers may be, of all digits."""

    def read(text: str) -> Moment:
        if len(text) != pattern.width:
            raise ValueError
        found = pattern.parse(text)
        if not YEARS[0] <= 1970 + found.milliseconds / DAY / _YEAR <= YEARS[1]:
            raise ValueError
        return found

    return read


def _texts(values: pl.Series) -> TimeGuess | None:
    texts = _different(values)
    longest = max(map(len, texts[:SOME]))
    if longest > LONGEST_TIME or not any(char.isdigit() for char in texts[0]):
        return None
    if _fits(texts, iso_moment):
        found = [*_read(texts, iso_moment)]
        return TimeGuess(
            "iso8601",
            zoned=all(each.offset is not None for each in found),
            has_clock=any(each.milliseconds % DAY for each in found),
        )
    fitting = [each for each in _formats(texts[:FIRST]) if _fits(texts[:SOME], each.parse)]
    counts = [(sum(1 for _ in _read(texts, each.parse)), each) for each in fitting]
    most = max((count for count, _ in counts), default=0)
    if most < FITTING * len(texts):
        return None
    best = [pattern for count, pattern in counts if count == most]
    if len(best) > 1:  # the file is most likely in the order of time
        order = [_backwards(values, pattern) for pattern in best]
        if 2 * min(order) < sorted(order)[1]:
            best = [best[order.index(min(order))]]
    chosen, other = best[0], best[1] if len(best) > 1 else None
    return TimeGuess(
        "text", chosen.text, chosen.has_zone, chosen.has_time, None if other is None else other.text
    )


def _formats(texts: Sequence[str]) -> Iterator[TimeFormat]:
    """Yield the formats of times with whose date one of some texts begins."""
    begins = [text[:end] for text in texts for end in range(len(text) + 1)]
    for date in _DATES:
        if next(_read(begins, TimeFormat(date).parse), None) is None:
            continue
        for clock in _CLOCKS:
            for between in _BETWEEN if clock else ("",):
                for zone in ("", "%z", " %z") if clock else ("",):
                    yield TimeFormat(f"{date}{between}{clock}{zone}")


def _fits(texts: Sequence[str], parse: Callable[[str], Moment], width: int = 0) -> bool:
    """Whether nearly all texts can be read, of the first few and of all."""
    if not texts:
        return False
    return all(
        sum(1 for _ in _read([text.zfill(width) for text in some], parse)) >= FITTING * len(some)
        for some in (texts[:SOME], texts)
    )


def _read(texts: Sequence[str], parse: Callable[[str], Moment]) -> Iterator[Moment]:
    for text in texts:
        try:
            yield parse(text)
        except ValueError:
            continue


def _backwards(values: pl.Series, pattern: TimeFormat) -> int:
    """Return how often time goes back from one row to the next."""
    found = _read(values.to_list(), pattern.parse)
    return sum(second.milliseconds < first.milliseconds for first, second in pairwise(found))
