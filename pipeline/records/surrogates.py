r"""Escapes of half a surrogate pair, such as `"\ud800"`: JSON has them, the decoder does not take them."""

from __future__ import annotations

import re
from typing import Final

_ESCAPES: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|\\.",  # any other, so that what follows an escaped backslash is not taken for an escape
    re.DOTALL,
)


def replace_lone_surrogates(value: bytes, escape: bytes) -> bytes:
    r"""Replace each escape of half a surrogate pair.

    Parameters
    ----------
    value
        JSON text.
    escape
        Escape to put in its place.

    Returns
    -------
    bytes
        Text of the same meaning otherwise.

    Examples
    --------
    >>> print(replace_lone_surrogates(rb'["\ud800", "\ud83d\ude00", "\\ud800"]', rb"\ufffd").decode())
    ["\ufffd", "\ud83d\ude00", "\\ud800"]
    """
    return _ESCAPES.sub(lambda found: escape if found[1] else found[0], value)
