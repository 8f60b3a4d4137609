"""Durations in the configuration."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, PlainSerializer, SerializationInfo

AS_TEXT: Final = "durations as text"
"""The context in which settings are dumped as a configuration file has them."""
UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Units of durations, in milliseconds."""


def milliseconds(text: object) -> int:
    """Read a duration like "90s", "30m", "6h" or "7d".

    Parameters
    ----------
    text
        A whole number and a unit.

    Returns
    -------
    int
        The duration in milliseconds.

    Raises
    ------
    ValueError
        The text is not a duration.

    Examples
    --------
    >>> milliseconds("6h")
    21600000
    """
    match = re.fullmatch(r"([0-9]+)\s*(ms|s|m|h|d)", text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ValueError('a duration is a whole number and a unit, like "500ms", "90s", "30m", "6h" or "7d"')
    return int(match[1]) * UNITS[match[2]]


def duration_text(duration: int) -> str:
    """Write a duration in milliseconds as `milliseconds` reads it, in the largest unit that is exact.

    Examples
    --------
    >>> duration_text(21_600_000), duration_text(1_500), duration_text(0)
    ('6h', '1500ms', '0ms')
    """
    unit = next((unit for unit in reversed(UNITS) if duration and duration % UNITS[unit] == 0), "ms")
    return f"{duration // UNITS[unit]}{unit}"


def _dumped(duration: int, info: SerializationInfo) -> int | str:
    return duration_text(duration) if info.context == AS_TEXT else duration


Milliseconds = Annotated[
    int, BeforeValidator(milliseconds), Field(le=2**53), PlainSerializer(_dumped, return_type=int | str)
]
"""At most the largest timestamp, so that the sum of both fits into 64 bits."""


def duration(default: str, *, ge: int = 0, le: int = 2**53) -> Any:
    """Return a field of `Milliseconds` with a default as text, and the least and the largest duration."""
    return Field(default, ge=ge, le=le)
