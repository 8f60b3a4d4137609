"""Bytes and texts of unknown content, so that they can do no harm to a terminal."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

CUT: Final = 240
"""Characters of a value that are shown."""


def printable(text: str, cut: int = CUT) -> str:
    r"""The text with escapes for everything that is not to be seen, and cut.

    Control characters, which move cursors and colour terminals, are not the only ones: there are
    others that reverse the order of what follows.

    Examples
    --------
    >>> print(printable("a\x1b[31mb\nc\u202ed"))
    a\x1b[31mb\nc\u202ed
    >>> printable("abcdef", cut=4)
    'abc…'
    """
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text[: cut + 1]
    )
    return shown if len(shown) <= cut else f"{shown[: cut - 1]}…"


def described(data: bytes | None, cut: int = CUT) -> str:
    r"""The bytes as text, with their number; what is not UTF-8 as escapes.

    Examples
    --------
    >>> print(described(b"\xff{not json"), described(None))
    10 bytes: \xff{not json null
    """
    if data is None:
        return "null"
    head = data[: 4 * (cut + 1)].decode(errors="backslashreplace")  # a character has four bytes at most
    return f"{len(data):,} byte{'' if len(data) == 1 else 's'}: {printable(head, cut)}"


def encoded(data: bytes | None) -> tuple[str | None, str | None]:
    r"""The bytes for JSON, and how they are written there.

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
