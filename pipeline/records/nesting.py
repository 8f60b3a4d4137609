"""How deep messages in JSON may nest: the parser's own limit is another in each version of Python."""

from __future__ import annotations

import re
from typing import Final

import msgspec

DEEPEST: Final = 500
"""Arrays and objects within one another; the parser of Python 3.11 takes less than 1,000."""
_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


def shallow(value: bytes) -> bytes:
    """Return a value in JSON that does not nest too deep.

    Parameters
    ----------
    value
        The text.

    Raises
    ------
    msgspec.DecodeError
        It does.

    Examples
    --------
    >>> shallow(b"[" * 500 + b"]" * 500) == b"[" * 500 + b"]" * 500
    True
    >>> shallow(b"[" * 501 + b"]" * 501)
    Traceback (most recent call last):
    msgspec.DecodeError: it nests more than 500 deep
    """
    if value.count(b"[") + value.count(b"{") > DEEPEST:
        depth = 0
        for token in _TOKENS.finditer(value):
            first = token[0][:1]
            depth += first in b"[{"
            depth -= first in b"]}"
            if depth > DEEPEST:
                raise msgspec.DecodeError(f"it nests more than {DEEPEST} deep")
    return value
