"""Format times, which are UTC, and durations for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_instant(text: str) -> int:
    """Return the milliseconds since 1970 of a time in ISO 8601, by default UTC.

    Raises
    ------
    ValueError
        The text is no such time.

    Examples
    --------
    >>> parse_instant("2020-07-05T08:00+02:00")
    1593928800000
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def instant(timestamp: int) -> str:
    """Format milliseconds since 1970 as a date and a time with milliseconds.

    Examples
    --------
    >>> instant(1593878903438)
    '2020-07-04 16:08:23.438'
    """
    try:
        return (EPOCH + timedelta(milliseconds=timestamp)).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    except OverflowError:  # beyond the year 9999, as the timestamp of a record may be
        return f"{timestamp} ms"


def date(timestamp: int) -> str:
    """Format milliseconds since 1970 as a date.

    Examples
    --------
    >>> date(1593878903438)
    '2020-07-04'
    """
    return instant(timestamp).split(" ")[0]


def duration(milliseconds: float) -> str:
    """Format a duration in milliseconds in the largest unit of which it has at least one.

    Examples
    --------
    >>> duration(740), duration(7_400), duration(90_000), duration(5_400_000), duration(172_800_000)
    ('740 ms', '7.4 s', '1.5 min', '1.5 h', '2 d')
    """
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if milliseconds >= size:
            return f"{milliseconds / size:.3g} {unit}"
    return f"{milliseconds:.3g} ms"
