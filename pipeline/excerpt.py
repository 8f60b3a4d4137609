"""The beginning of a value that an error shows."""

from __future__ import annotations

from typing import Final

EXCERPT: Final = 100
"""Characters of a value that an error shows, at most."""


def excerpt(value: object) -> str:
    """Return a value as Python writes it, cut to `EXCERPT` characters.

    Parameters
    ----------
    value
        A value of unknown size.

    Examples
    --------
    >>> excerpt("abc"), excerpt(5)
    ("'abc'", '5')
    >>> len(excerpt(10**6 * "x")), excerpt(10**6 * "x")[-5:]
    (100, 'xxxx…')
    """
    text = repr(value[: EXCERPT + 1] if isinstance(value, str | bytes) else value)
    return text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1]}…"
