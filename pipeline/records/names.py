"""Names on the wire beside the fields of records: faults, headers of dead letters, keys of checkpoints."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple


class Fault(StrEnum):
    """Why a message ends as a dead letter. Each fault is also the name of a counter."""

    UNDECODABLE = "undecodable"
    INVALID = "invalid"
    WRONG_KEY = "wrong_key"
    FUTURE = "future"
    PAST = "past"
    ORPHAN = "orphan"
    LATE = "late"
    MISMATCHED = "mismatched"
    TABLE_FULL = "table_full"


JOIN_FAULTS: Final = (Fault.ORPHAN, Fault.LATE, Fault.MISMATCHED)
"""Faults of valid labels that the join cannot use."""
CLOCK_FAULTS: Final = (Fault.FUTURE, Fault.PAST)
"""Faults of messages that could be used at another time."""
TABLE_FAULTS: Final = (Fault.UNDECODABLE, Fault.INVALID, Fault.WRONG_KEY, Fault.TABLE_FULL)
"""Faults of a table's record."""
MESSAGE_FAULTS: Final = tuple(
    fault for fault in Fault if fault not in JOIN_FAULTS and fault is not Fault.TABLE_FULL
)
"""Faults of a message by itself, in either input."""

ERROR_HEADERS: Final = "__streams.errors."
"""Begins the names of a dead letter's headers (Kafka Streams' names)."""
EXCEPTION_HEADER: Final = f"{ERROR_HEADERS}exception"
"""The fault."""
MESSAGE_HEADER: Final = f"{ERROR_HEADERS}message"
"""The reason, in words."""
TOPIC_HEADER: Final = f"{ERROR_HEADERS}topic"
PARTITION_HEADER: Final = f"{ERROR_HEADERS}partition"
OFFSET_HEADER: Final = f"{ERROR_HEADERS}offset"
LENGTH_HEADER: Final = f"{ERROR_HEADERS}length"
"""Bytes of the message's value, where the dead letter is cut."""
SHA256_HEADER: Final = f"{ERROR_HEADERS}sha256"
"""SHA-256 of the message's value in hexadecimal digits, where the dead letter is cut."""

REDRIVEN_HEADER: Final = "forks-redriven-from"
"""The dead letter that a message of an input was made of again: its topic, partition and offset."""

MAC_HEADER: Final = "forks-mac"
"""The MAC of a state record, where `checkpoint.key` is set."""


class SnapshotChunk(NamedTuple):
    """A chunk of a snapshot, as its key names it."""

    slot: int
    number: int


def state_key(partition: int) -> str:
    """Return the key of a partition's state records.

    Examples
    --------
    >>> state_key(2)
    '2/state'
    """
    return f"{partition}/state"


def is_state_key(key: bytes | None) -> bool:
    """Tell whether a key is that of a state record."""
    return re.fullmatch(rb"[0-9]+/state", key or b"") is not None


def snapshot_key(partition: int, slot: int, number: int) -> str:
    """Return the key of a chunk of a snapshot.

    Examples
    --------
    >>> snapshot_key(2, slot=0, number=1)
    '2/snapshot/0/1'
    """
    return f"{partition}/snapshot/{slot}/{number}"


def parse_snapshot_key(key: bytes | None) -> SnapshotChunk | None:
    """Return the chunk that a key names; None if it is not the key of a snapshot's chunk.

    Examples
    --------
    >>> parse_snapshot_key(b"0/snapshot/1/2")
    SnapshotChunk(slot=1, number=2)
    """
    match = re.fullmatch(rb"[0-9]+/snapshot/([0-9]+)/([0-9]+)", key or b"")
    return SnapshotChunk(int(match[1]), int(match[2])) if match else None
