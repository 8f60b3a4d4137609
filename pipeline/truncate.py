"""The beginning of a value that an error shows."""

from __future__ import annotations

from typing import Final

MAX_SHOWN: Final = 100
"""Characters of a value that an error shows, at most."""


def truncate(text: str, limit: int = MAX_SHOWN) -> str:
    r"""Return a text with escapes for what is not printable, cut to some characters.

    Parameters
    ----------
    text
        A text of unknown size.
    limit
        Characters of the result, at most.

    Examples
    --------
    >>> print(truncate("abcdef", 4), truncate("a\x1b[31mb"))
    abc… a\x1b[31mb
    """
    escaped = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text[: limit + 1]
    )
    return escaped if len(escaped) <= limit else f"{escaped[: limit - 1]}…"


def shown(value: object) -> str:
    """Return a value as Python writes it, cut to `MAX_SHOWN` characters.

    Parameters
    ----------
    value
        A value of unknown size.

    Examples
    --------
    >>> shown("abc"), shown(5)
    ("'abc'", '5')
    >>> len(shown(10**6 * "x")), shown(10**6 * "x")[-5:]
    (100, 'xxxx…')
    """
    return truncate(repr(value[: MAX_SHOWN + 1] if isinstance(value, str | bytes) else value))
