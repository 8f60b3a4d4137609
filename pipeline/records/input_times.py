"""Times in messages and tables: their types by unit, and what reads and writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from pipeline.config.pointer import parts_of
from pipeline.config.section import TimeUnit
from pipeline.config.stream import InputDefinition
from pipeline.config.times import Moment, TimeFormat, TimeSettings, clock, half_day, moment, zone
from pipeline.records.fields import INTEGER_LIMIT, Timestamp
from pipeline.truncate import shown

_MAX_TIME: Final = 2**53
"""The largest timestamp, in milliseconds: see `pipeline.records.fields.Timestamp`."""
LONGEST_TIME: Final = 100
"""Characters of a time that is text, at most."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=LONGEST_TIME)]
TIME_TYPES: Final[Mapping[TimeUnit, Any]] = {
    "ms": Timestamp,
    "us": Annotated[int, msgspec.Meta(ge=0, le=_MAX_TIME * 1000)],
    "ns": Annotated[int, msgspec.Meta(ge=0, le=INTEGER_LIMIT - 1)],
    "s": Annotated[float, msgspec.Meta(ge=0, le=_MAX_TIME / 1000)],
    "iso8601": _Text,
    "text": _Text | int,
}
"""Types of times in messages."""
TIME_OF_DAY: Final = Annotated[int, msgspec.Meta(ge=0, le=23)] | _Text
"""The type of a time of the day: an hour, or text."""
_ISO: Final = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)"
    r"(?:[T ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?)?"
    r" ?(Z|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)
_TIME_OF_DAY: Final = re.compile(
    r"(\d\d?)(?::(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)? ?([ap]\.?m\.?)?", re.ASCII | re.IGNORECASE
)


def iso_moment(text: str) -> Moment:
    """Return the time that a text in ISO 8601 says: a day, or a day and a time, with or without its zone.

    Raises
    ------
    ValueError
        It is none.

    Examples
    --------
    >>> iso_moment("1970-01-01T00:00:01.5+01:00")
    Moment(milliseconds=1500, offset=60)
    >>> iso_moment("19700102"), iso_moment("1970-01-02 00:00")
    (Moment(milliseconds=86400000, offset=None), Moment(milliseconds=86400000, offset=None))
    """
    match = _ISO.fullmatch(text)
    if match is None:
        raise ValueError("it is not ISO 8601")
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    time = clock(int(hour or 0), int(minute or 0), int(second or 0), fraction or "")
    return moment(int(year), int(month), int(day), time, zone(offset))


def time_of_day(said: int | str) -> int:
    """Return the milliseconds since a day began.

    Parameters
    ----------
    said
        An hour from 0 on, or text like "13:05", "13:05:59.5" or "1:05 PM".

    Raises
    ------
    ValueError
        It is none.

    Examples
    --------
    >>> time_of_day(1), time_of_day("13:05"), time_of_day("1:05 pm")
    (3600000, 47100000, 47100000)
    """
    match = _TIME_OF_DAY.fullmatch(str(said))
    if match is None:
        raise ValueError("it is no time of the day")
    hour, minute, second, fraction, half = match.groups()
    hours = half_day(int(hour), half) if half else int(hour)
    return clock(hours, int(minute or 0), int(second or 0), fraction or "")


def milliseconds_reader(settings: TimeSettings) -> Callable[[Any], int]:
    """Return what makes milliseconds since 1970, UTC, of a time.

    It raises `ValueError` where the time is not written so, or does not say its zone and nobody does.

    Parameters
    ----------
    settings
        How times are written.

    Examples
    --------
    >>> milliseconds_reader(TimeSettings(time_unit="iso8601", utc_offset="+01:00"))("1970-01-01 02:00")
    3600000
    """
    if settings.time_unit not in {"text", "iso8601"}:
        return _NUMBERS[settings.time_unit]
    ahead, width, parse = settings.utc_offset, 0, iso_moment
    if settings.time_format is not None:
        pattern = TimeFormat(settings.time_format)
        width, parse = pattern.width, pattern.parse

    def read(said: str | int) -> int:
        text = said if isinstance(said, str) else str(said).zfill(width)
        milliseconds, offset = parse(text)
        if offset is None:
            if ahead is None:
                raise ValueError('it does not say its zone: set utc_offset, such as "+00:00"')
            offset = ahead
        return milliseconds - offset * 60_000

    return read


_NUMBERS: Final[Mapping[TimeUnit, Callable[[Any], int]]] = {
    "ms": int,
    "us": lambda time: time // 1000,
    "ns": lambda time: time // 1_000_000,
    "s": lambda time: round(time * 1000),
}
"""Functions from numbers since 1970 to milliseconds."""


def times_reader(definition: InputDefinition) -> Callable[[list[Any], int], None]:
    """Return what puts milliseconds in the place of a message's time.

    Where there is a time of the day, it comes next in the list and is taken out.

    Parameters
    ----------
    definition
        Definition of the messages.
    """
    read_time = _refusing(milliseconds_reader(definition), definition.time)
    clock_at = definition.time_of_day
    read_clock = None if clock_at is None else _refusing(time_of_day, clock_at)
    where = _where(definition.time)

    def read(found: list[Any], at: int) -> None:
        said = found[at]
        milliseconds = read_time(said)
        if read_clock is not None:
            milliseconds += read_clock(found.pop(at + 1))
        found[at] = _from_1970(milliseconds, said, where)

    return read


def time_reader(settings: TimeSettings, pointer: str) -> Callable[[Any], int]:
    """Return what makes milliseconds since 1970, UTC, of a record's time; errors are those of a decoder.

    Parameters
    ----------
    settings
        How times are written.
    pointer
        Where the time is.

    Examples
    --------
    >>> time_reader(TimeSettings(time_unit="iso8601"), "/at")("1970-01-01T00:00:01Z")
    1000
    """
    read, where = _refusing(milliseconds_reader(settings), pointer), _where(pointer)
    return lambda said: _from_1970(read(said), said, where)


def _where(pointer: str) -> str:
    return f"`$.{'.'.join(parts_of(pointer))}`"


def _refusing(read: Callable[[Any], int], pointer: str) -> Callable[[Any], int]:
    """Return what reads a time, with the errors of a decoder."""
    where = _where(pointer)

    def refuse(said: Any) -> int:
        try:
            return read(said)
        except ValueError as error:
            reason = f"Expected a time, got {shown(said)}: {error} - at {where}"
            raise msgspec.ValidationError(reason) from None

    return refuse


def _from_1970(milliseconds: int, said: object, where: str) -> int:
    if milliseconds < 0:
        raise msgspec.ValidationError(f"Expected a time from 1970 on, got {shown(said)} - at {where}")
    return milliseconds


def time_writer(settings: TimeSettings, *, day: bool = False) -> Callable[[int], object]:
    """Return what writes milliseconds since 1970, UTC, as a time; in ISO 8601 as a day alone, if so said.

    Examples
    --------
    >>> time_writer(TimeSettings(time_unit="s"))(2_500)
    2.5
    """
    text = "%Y-%m-%d" if day and settings.time_unit == "iso8601" else settings.time_format
    if text is not None:
        pattern, offset = TimeFormat(text), settings.utc_offset or 0
        return lambda time: pattern.write(time, offset)
    return _WRITERS[settings.time_unit]


def clock_writer(settings: TimeSettings) -> Callable[[int], object]:
    """Return what writes the time of the day of milliseconds since 1970, UTC.

    Examples
    --------
    >>> clock_writer(TimeSettings(time_unit="iso8601", utc_offset="+01:00"))(61_500)
    '01:01:01.500'
    """
    pattern, offset = TimeFormat("%Y%m%d%H:%M:%S.%f"), settings.utc_offset or 0
    return lambda time: pattern.write(time, offset)[8:-3]


_WRITERS: Final[Mapping[TimeUnit, Callable[[int], object]]] = {
    "ms": int,
    "us": lambda time: time * 1000,
    "ns": lambda time: time * 1_000_000,
    "s": lambda time: time / 1000,
    "iso8601": lambda time: (_EPOCH + timedelta(milliseconds=time)).isoformat(timespec="milliseconds"),
}
"""Functions from milliseconds to times in messages."""
