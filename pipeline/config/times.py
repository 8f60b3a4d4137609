"""How times are written: numbers since 1970, ISO 8601, or text of a format like those of strptime."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pipeline.config.section import Section, TimeUnit

DAY: Final = 86_400_000
"""Milliseconds."""
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS: Final = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAYS: Final = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_NUMBERS: Final = frozenset("YymdHIMSf")
"""Directives of which each is a number."""
_PATTERNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Y": r"\d{4}",
        "f": r"\d{1,9}",
        "b": "|".join(name[:3] for name in _MONTHS),
        "B": "|".join(_MONTHS),
        "a": "|".join(name[:3] for name in _DAYS),
        "A": "|".join(_DAYS),
        "p": r"a\.?m\.?|p\.?m\.?",
        "z": r"z|[+-]\d\d:?\d\d",
    }
)
"""What matches a directive, but for numbers of two digits."""
DIRECTIVES: Final = "YymbBdaAHIMSfpz"
"""The directives of a format, as in strptime."""


def _offset(text: object) -> object:
    """Return the minutes of an offset from UTC like "+05:30"."""
    match = re.fullmatch(r"([+-])([01][0-9]):([0-5][0-9])", text) if isinstance(text, str) else None
    if match is None:
        raise ValueError('an offset from UTC is like "+08:00" or "-05:30"')
    minutes = 60 * int(match[2]) + int(match[3])
    return -minutes if match[1] == "-" else minutes


UtcOffset = Annotated[int, BeforeValidator(_offset)]
"""Minutes that the local time is ahead of UTC."""


class Moment(NamedTuple):
    """A time as it was written."""

    milliseconds: int
    """Since 1970 in the zone in which it was written."""
    offset: int | None
    """Minutes that this zone is ahead of UTC; None if the text does not say."""


def moment(year: int, month: int, day: int, time: int, offset: int | None) -> Moment:
    """Return a time of a day.

    Parameters
    ----------
    year, month, day
        The day.
    time
        Milliseconds since the day began.
    offset
        Minutes that its zone is ahead of UTC; None if nobody says.

    Raises
    ------
    ValueError
        There is no such day.

    Examples
    --------
    >>> moment(1970, 1, 2, 5, None)
    Moment(milliseconds=86400005, offset=None)
    """
    try:
        ordinal = date(year, month, day).toordinal()
    except ValueError:  # whose words differ between versions of Python
        raise ValueError("there is no such day") from None
    return Moment((ordinal - _FIRST_DAY) * DAY + time, offset)


def clock(hour: int, minute: int, second: int, fraction: str) -> int:
    """Return the milliseconds since a day began; digits of a fraction are rounded to microseconds first.

    Raises
    ------
    ValueError
        There is no such time of the day.

    Examples
    --------
    >>> clock(1, 0, 0, "0019996")
    3600002
    """
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("there is no such time of the day")
    micros = (int(f"{fraction:0<9.9}") + 500) // 1000 if fraction else 0
    return ((hour * 60 + minute) * 60 + second) * 1000 + micros // 1000


def half_day(hour: int, word: str) -> int:
    """Return the hour from 0 to 23 of one from 1 to 12 before or after noon.

    Raises
    ------
    ValueError
        There is no such hour.

    Examples
    --------
    >>> half_day(12, "am"), half_day(12, "PM"), half_day(3, "p.m.")
    (0, 12, 15)
    """
    if not 1 <= hour <= 12:
        raise ValueError("there is no such hour of half a day")
    return hour % 12 + 12 * word.lower().startswith("p")


class TimeFormat:
    """A format of times, compiled.

    A number has as many digits as it is usually written with, or one less where no number stands beside it.
    Names of months and days are English. A year of two digits is from 1969 to 2068.

    Parameters
    ----------
    text
        Directives as in strptime, those of `DIRECTIVES`, and what else is in each time.

    Raises
    ------
    ValueError
        It has another directive, one twice, or does not say year, month and day.

    Examples
    --------
    >>> TimeFormat("%m/%d/%Y %I:%M %p").parse("11/7/2017 9:30 PM")
    Moment(milliseconds=1510090200000, offset=None)
    >>> TimeFormat("%y%m%d%H").parse("14102100").milliseconds
    1413849600000
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = [*_parts(text)]
        self.directives = [value for value, is_directive in self._parts if is_directive]
        _check(self.directives)
        self._regex = re.compile("".join(self._patterns()), re.ASCII | re.IGNORECASE)
        self.width = self._width()

    @property
    def has_time(self) -> bool:
        """Whether it says more than the day."""
        return "H" in self.directives or "I" in self.directives

    @property
    def has_zone(self) -> bool:
        """Whether it says the offset from UTC."""
        return "z" in self.directives

    def _patterns(self) -> Iterator[str]:
        for number, (value, is_directive) in enumerate(self._parts):
            if not is_directive:
                yield "".join(r"\s+" if char == " " else re.escape(char) for char in value)
                continue
            beside = [self._parts[at] for at in (number - 1, number + 1) if 0 <= at < len(self._parts)]
            alone = not any(directive and each in _NUMBERS for each, directive in beside)
            digits = r"\d{1,2}" if alone and value != "y" else r"\d\d"
            yield f"(?P<{value}>{_PATTERNS.get(value, digits)})"

    def _width(self) -> int:
        """Return the number of characters where there is nothing but numbers; else 0."""
        if not all(directive and value in _NUMBERS - {"f"} for value, directive in self._parts):
            return 0
        return sum(4 if value == "Y" else 2 for value, _ in self._parts)

    def parse(self, text: str) -> Moment:
        """Return the time that a text says.

        Raises
        ------
        ValueError
            It does not have this format.
        """
        match = self._regex.fullmatch(text)
        if match is None:
            raise ValueError(f"it is not written as {self.text}")
        said = match.groupdict()
        year = int(said.get("Y") or said["y"])
        if "Y" not in said:
            year += 2000 if year < 69 else 1900
        if "m" in said:
            month = int(said["m"])
        else:
            name = (said.get("b") or said["B"]).lower()
            month = next(number for number, each in enumerate(_MONTHS, 1) if each.startswith(name))
        hour = int(said.get("H") or 0)
        if "I" in said:
            hour = half_day(int(said["I"]), said["p"])
        time = clock(hour, int(said.get("M") or 0), int(said.get("S") or 0), said.get("f") or "")
        return moment(year, month, int(said["d"]), time, zone(said.get("z")))

    def write(self, milliseconds: int, offset: int) -> str:
        """Return the text of a time.

        Parameters
        ----------
        milliseconds
            Since 1970, UTC.
        offset
            Minutes that the text's zone is ahead of UTC.

        Examples
        --------
        >>> TimeFormat("%d.%m.%Y %H:%M %z").write(0, 60)
        '01.01.1970 01:00 +0100'
        """
        at = _EPOCH + timedelta(milliseconds=milliseconds + offset * 60_000)
        month, day = _MONTHS[at.month - 1].capitalize(), _DAYS[at.weekday()]
        sign, minutes = "-" if offset < 0 else "+", abs(offset)
        values = {
            **{"Y": f"{at.year:04}", "y": f"{at.year % 100:02}"},
            **{"m": f"{at.month:02}", "d": f"{at.day:02}"},
            **{"b": month[:3], "B": month, "a": day[:3], "A": day},
            **{
                "H": f"{at.hour:02}",
                "I": f"{(at.hour + 11) % 12 + 1:02}",
                "p": "AM" if at.hour < 12 else "PM",
            },
            **{"M": f"{at.minute:02}", "S": f"{at.second:02}", "f": f"{at.microsecond:06}"},
            "z": f"{sign}{minutes // 60:02}{minutes % 60:02}",
        }
        return "".join(values[value] if is_directive else value for value, is_directive in self._parts)


def zone(text: str | None) -> int | None:
    """Return the minutes that a zone such as "+05:30" or "Z" is ahead of UTC; None of nothing.

    Raises
    ------
    ValueError
        There is no such zone.

    Examples
    --------
    >>> zone("Z"), zone("-0130"), zone("+02"), zone(None)
    (0, -90, 120, None)
    """
    if text is None:
        return None
    if text in {"Z", "z"}:
        return 0
    hours, minutes = int(text[1:3]), int(text[-2:]) if len(text) > 3 else 0
    if hours > 23 or minutes > 59:
        raise ValueError("there is no such zone")
    ahead = hours * 60 + minutes
    return -ahead if text[0] == "-" else ahead


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the directives of a format and the texts between them, and which of both each is."""
    for percent, plain in re.findall(r"%(.?)|([^%]+)", text, re.DOTALL):
        if percent == "%":
            yield "%", False
        elif plain:
            yield plain, False
        else:
            yield percent, True


def _check(directives: list[str]) -> None:
    unknown = next((each for each in directives if each not in DIRECTIVES or not each), None)
    if unknown is not None:
        known = ", ".join(f"%{each}" for each in DIRECTIVES)
        raise ValueError(f"%{unknown} is no directive of a time's format: there are {known}")
    found = set(directives)
    if len(found) < len(directives):
        raise ValueError("a format names a directive once")
    for what, names in (("year", "Yy"), ("month", "mbB"), ("day", "d")):
        if len(found & set(names)) != 1:
            raise ValueError(
                f"a format says the {what} once: with {' or '.join(f'%{each}' for each in names)}"
            )
    if {"H", "I"} <= found or ("I" in found) != ("p" in found):
        raise ValueError("a format says the hour with %H, or with %I and %p")


def _known_format(text: str) -> str:
    TimeFormat(text)
    return text


_Format = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_known_format)]


class TimeSettings(Section):
    """How a time is written."""

    time_unit: TimeUnit = "ms"
    """How the time is written."""
    time_format: _Format | None = None
    """The format of times that are text in another format than ISO 8601, as for strptime."""
    utc_offset: UtcOffset | None = None
    """The zone of times that do not say theirs, as "+08:00"; None if each says it."""

    @model_validator(mode="after")
    def _check_time(self) -> Self:
        if (self.time_unit == "text") != (self.time_format is not None):
            raise ValueError('time_format says how times are written: with time_unit = "text" only')
        if self.time_unit not in {"text", "iso8601"} and self.utc_offset is not None:
            raise ValueError('numbers since 1970 are UTC: utc_offset is of time_unit = "text" or "iso8601"')
        if self.time_format is None:
            return self
        if TimeFormat(self.time_format).has_zone == (self.utc_offset is not None):
            raise ValueError(
                'the zone of times is said once: by %z in time_format, or by utc_offset = "+00:00"'
            )
        return self
