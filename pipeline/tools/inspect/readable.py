"""Escape bytes and texts of unknown content, so that they are safe for a terminal."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

CUT: Final = 240
"""Characters of a value that are shown, at most."""


def printable(text: str, cut: int = CUT) -> str:
    r"""Escape everything in a text that is not printable, and cut the text.

    Not only control characters are escaped, which move cursors and set colours, but also characters
    that reverse the direction of the text.

    Parameters
    ----------
    text
        Text of unknown content.
    cut
        Characters of the result, at most.

    Examples
    --------
    >>> print(printable("a\x1b[31mb\nc\u202ed"))
    a\x1b[31mb\nc\u202ed
    >>> printable("abcdef", cut=4)
    'abc…'
    """
    escaped = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text[: cut + 1]
    )
    return escaped if len(escaped) <= cut else f"{escaped[: cut - 1]}…"


def encoded(data: bytes | None) -> tuple[str | None, str | None]:
    r"""Return bytes as text for JSON, and the encoding of this text.

    Examples
    --------
    >>> encoded(b"abc"), encoded(b"\xff"), encoded(None)
    (('abc', 'utf-8'), ('/w==', 'base64'), (None, None))
    """
    if data is None:
        return None, None
    try:
        return data.decode(), "utf-8"
    except UnicodeDecodeError:
        return b64encode(data).decode(), "base64"
