"""Where the checkpoints are, and how they are."""

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
    """Folded into it."""
    offsets: list[int]
    """Of its chunks."""
    bytes: int | None
    """None if a chunk is not there."""
    sha256: str
    age: float | None
    """Seconds since it was written."""
    damage: str | None
    """What is wrong with it, so that a worker cannot use it."""


class Checkpoint(msgspec.Struct, frozen=True):
    """What the group continues from in a partition."""

    partition: int
    state_offset: int | None
    """Where the last state record is in the checkpoints topic; None if nothing was committed yet."""
    outcomes: int
    """Folded when that was written."""
    snapshot: Snapshot | None
    previous: Snapshot | None
    """The one before, that a worker takes where `snapshot` is damaged."""


def read_checkpoint(group: Group, partition: int) -> Checkpoint:
    """Look at a partition's checkpoint, and at every byte of its snapshots."""
    committed_state = group.committed_state(partition)
    if committed_state is None:
        return Checkpoint(partition, None, 0, None, None)
    state = committed_state.state
    snapshot, previous = (_look_at(group, partition, each) for each in (state.snapshot, state.previous))
    return Checkpoint(partition, committed_state.offset, state.outcomes, snapshot, previous)


def _look_at(group: Group, partition: int, reference: SnapshotReference | None) -> Snapshot | None:
    if reference is None:
        return None
    topic = group.topics.checkpoints
    size, age, damage = None, None, None
    try:
        chunks = [group.log.at(topic, partition, offset) for offset in reference.chunks]
        data = b"".join(chunk.value() or b"" for chunk in chunks)
        size, age = len(data), time.time() - chunks[0].timestamp()[1] / 1000
        if hashlib.sha256(data).hexdigest() != reference.sha256:
            damage = "its bytes have another SHA-256"
    except StateError as error:
        damage = str(error)
    return Snapshot(reference.folded, reference.chunks, size, reference.sha256, age, damage)
