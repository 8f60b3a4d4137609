"""Parse the position from which records are read."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

from pipeline.errors import ConfigError
from pipeline.tools.times import parse_instant


class Last(NamedTuple):
    """The last records."""

    number: int


class At(NamedTuple):
    """The records from an offset on, in every partition."""

    offset: int


class Since(NamedTuple):
    """The records of a time or later, in milliseconds since 1970."""

    timestamp: int


StartPosition: TypeAlias = Last | At | Since


def parse_start(text: str) -> StartPosition:
    """Parse the value of `--from`: an offset, -N, "beginning", or a time in ISO 8601, by default UTC.

    Parameters
    ----------
    text
        Value of the option.

    Returns
    -------
    StartPosition
        Position to start from.

    Raises
    ------
    ConfigError
        If the text is none of these.

    Examples
    --------
    >>> parse_start("-20"), parse_start("beginning"), parse_start("120")
    (Last(number=20), At(offset=0), At(offset=120))
    >>> parse_start("2020-07-05T08:00+02:00")
    Since(timestamp=1593928800000)
    """
    if text == "beginning":
        return At(0)
    if re.fullmatch(r"-?[0-9]{1,18}", text):
        return Last(int(text[1:])) if text.startswith("-") else At(int(text))
    try:
        return Since(parse_instant(text))
    except ValueError as error:
        raise ConfigError(
            f"--from {text}: accepted are an offset, -N for the last N, beginning, and a time like "
            "2020-07-05 or 2020-07-05T08:00:00Z"
        ) from error
