"""JSON pointers: where a field is in a message."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final

from pydantic import AfterValidator

MAX_DEPTH: Final = 8
"""Names in a pointer, at most."""


def parts_of(pointer: str) -> tuple[str, ...]:
    """Return the names in a JSON pointer (RFC 6901).

    Raises
    ------
    ValueError
        The text is no pointer to a field of an object.

    Examples
    --------
    >>> parts_of("/user/id"), parts_of("/a~1b")
    (('user', 'id'), ('a/b',))
    """
    parts = tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    if not pointer.startswith("/") or not all(parts) or re.search(r"~(?![01])", pointer):
        raise ValueError('a pointer names a field by its path, like "/user_id" or "/user/id"')
    if len(parts) > MAX_DEPTH:
        raise ValueError(f"a pointer has at most {MAX_DEPTH} names")
    return parts


def nested(entries: Iterable[tuple[tuple[str, ...], Any]]) -> dict[str, Any]:
    """Return dictionaries within one another, with each entry at the names of its pointer.

    Examples
    --------
    >>> nested([(("user", "id"), 7), (("user", "name"), "Zoe"), (("at",), 5)])
    {'user': {'id': 7, 'name': 'Zoe'}, 'at': 5}
    """
    tree: dict[str, Any] = {}
    for parts, entry in entries:
        inner = tree
        for part in parts[:-1]:
            inner = inner.setdefault(part, {})
        inner[parts[-1]] = entry
    return tree


def _checked(pointer: str) -> str:
    parts_of(pointer)
    return pointer


Pointer = Annotated[str, AfterValidator(_checked)]
"""A JSON pointer to a field of a message."""
