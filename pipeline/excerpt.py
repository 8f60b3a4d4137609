"""The beginning of a value that an error shows."""

from __future__ import annotations

from typing import Final

EXCERPT: Final = 100
"""Characters of a value that an error shows, at most."""


def shortened(text: str, limit: int = EXCERPT) -> str:
    r"""Return a text with escapes for what is not printable, cut to some characters.

    Parameters
    ----------
    text
        A text of unknown size.
    limit
        Characters of the result, at most.

    Examples
    --------
    >>> print(shortened("abcdef", 4), shortened("a\x1b[31mb"))
    abc… a\x1b[31mb
    """
    escaped = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text[: limit + 1]
    )
    return escaped if len(escaped) <= limit else f"{escaped[: limit - 1]}…"


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
    return shortened(repr(value[: EXCERPT + 1] if isinstance(value, str | bytes) else value))
