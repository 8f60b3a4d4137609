"""Parse the keys of the checkpoints topic."""

from __future__ import annotations

import re
from typing import NamedTuple


class Chunk(NamedTuple):
    """A chunk of a snapshot."""

    slot: int
    number: int


def is_state(key: bytes | None) -> bool:
    """Return whether this is the key of a state record."""
    return re.fullmatch(rb"[0-9]+/state", key or b"") is not None


def read_chunk(key: bytes | None) -> Chunk | None:
    """Parse the key of a chunk; None if it is the key of something else.

    Examples
    --------
    >>> read_chunk(b"0/snapshot/1/2")
    Chunk(slot=1, number=2)
    """
    match = re.fullmatch(rb"[0-9]+/snapshot/([0-9]+)/([0-9]+)", key or b"")
    return Chunk(int(match[1]), int(match[2])) if match else None
