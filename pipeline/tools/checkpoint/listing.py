"""List the checkpoints of a group, and check their bytes."""

from __future__ import annotations

import hashlib
import time

import msgspec

from pipeline.errors import StateError
from pipeline.task.state import SnapshotReference
from pipeline.tools.checkpoint.group import Group


class Snapshot(msgspec.Struct, frozen=True):
    """A snapshot in the checkpoints topic."""

    outcomes: int
    """Outcomes that it has learned."""
    offsets: list[int]
    """Offsets of its chunks."""
    bytes: int | None
    """Size; None if a chunk is missing."""
    sha256: str
    age: float | None
    """Seconds since it was written; None if a chunk is missing."""
    damage: str | None
    """Why a worker cannot use it; None if it can."""


class Checkpoint(msgspec.Struct, frozen=True):
    """The checkpoint that a group continues from in one partition."""

    partition: int
    state_offset: int | None
    """Offset of the last state record in the checkpoints topic; None if nothing was committed yet."""
    outcomes: int
    """Outcomes when the state record was written."""
    snapshot: Snapshot | None
    previous: Snapshot | None
    """Snapshot before it, which a worker restores if `snapshot` is damaged."""


def read_checkpoint(group: Group, partition: int) -> Checkpoint:
    """Read the checkpoint of a partition, and check every byte of its snapshots."""
    committed_state = group.committed_state(partition)
    if committed_state is None:
        return Checkpoint(partition, None, 0, None, None)
    state = committed_state.state
    snapshot, previous = (
        _check_snapshot(group, partition, each) for each in (state.snapshot, state.previous)
    )
    return Checkpoint(partition, committed_state.offset, state.outcomes, snapshot, previous)


def _check_snapshot(group: Group, partition: int, reference: SnapshotReference | None) -> Snapshot | None:
    if reference is None:
        return None
    topic, log = group.topics.checkpoints, group.log(partition)
    size, age, damage = None, None, None
    try:
        chunks = [log.at(topic, offset) for offset in reference.chunks]
        data = b"".join(chunk.value() or b"" for chunk in chunks)
        size, age = len(data), time.time() - chunks[0].timestamp()[1] / 1000
        if hashlib.sha256(data).hexdigest() != reference.sha256:
            damage = "its bytes have another SHA-256"
    except StateError as error:
        damage = str(error)
    return Snapshot(reference.outcomes_learned, reference.chunks, size, reference.sha256, age, damage)
