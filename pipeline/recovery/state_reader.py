"""Read a committed state record and the snapshot that it names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec
import structlog

from pipeline.errors import StateError
from pipeline.kafka.committed import CommittedPosition
from pipeline.kafka.log import LogReader, decode_record
from pipeline.kafka.topics import Topics
from pipeline.model.model import Model
from pipeline.model.snapshot import unpack
from pipeline.task.state import STATE_VERSION, SnapshotReference, State


class _Version(msgspec.Struct):
    version: int


_VERSIONS = msgspec.json.Decoder(_Version)
_STATES = msgspec.json.Decoder(State)
_log = structlog.get_logger()


def read_state(log: LogReader, topics: Topics, partition: int, position: CommittedPosition) -> State:
    """Read the state record that was committed with the offsets.

    Parameters
    ----------
    log
        Reads it.
    topics
        The names of the topics.
    partition
        The partition's number.
    position
        What the group has committed for it.

    Returns
    -------
    State
        The state record.

    Raises
    ------
    StateError
        It is missing, of another version, or of other offsets.
    """
    assert position.state_offset is not None
    message = log.at(topics.checkpoints, partition, position.state_offset)
    version = decode_record(_VERSIONS, message).version
    if version != STATE_VERSION:
        raise StateError(
            f"the state record of partition {partition} has version {version}, "
            f"this program reads version {STATE_VERSION}. Use the program that wrote it, or replay into new "
            "topics, with another kafka.prefix"
        )
    state = decode_record(_STATES, message)
    found = (state.interactions.offset, state.labels.offset)
    if found != (position.interactions, position.labels):
        raise StateError(
            f"the group's offsets of partition {partition} are {position[:2]}, but its state record was "
            f"written for {found}: the offsets were set by hand. Set them back to go on"
        )
    return state


def read_snapshot(
    log: LogReader, topics: Topics, state: State, new_model: Callable[[], Model]
) -> tuple[Model, State]:
    """Restore the model of the latest usable snapshot.

    Parameters
    ----------
    log
        Reads the snapshots.
    topics
        The names of the topics.
    state
        The state record, which names its last snapshots.
    new_model
        Makes a model that has seen nothing.

    Returns
    -------
    Model
        The model; one that has seen nothing, which has to learn all outcomes, if no snapshot is usable.
    State
        The state record without the snapshots that cannot be used.
    """
    references = state.snapshots
    while references:
        model, reference = new_model(), references.pop(0)
        try:
            unpack(snapshot_bytes(log, topics, state.partition, reference), model)
        except StateError as error:
            instead = "trying the one before it" if references else "learning all outcomes again instead"
            _log.warning(
                f"snapshot unusable, {instead}",
                partition=state.partition,
                outcomes=reference.folded,
                reason=str(error),
            )
        else:
            previous = references[0] if references else None
            return model, msgspec.structs.replace(state, snapshot=reference, previous=previous)
    return new_model(), msgspec.structs.replace(state, snapshot=None, previous=None)


def snapshot_bytes(log: LogReader, topics: Topics, partition: int, reference: SnapshotReference) -> bytes:
    """Read the bytes of a snapshot.

    Raises
    ------
    StateError
        A chunk is missing, or the bytes do not have the SHA-256 that the state record names.
    """
    chunks = [log.at(topics.checkpoints, partition, offset).value() or b"" for offset in reference.chunks]
    data = b"".join(chunks)
    if hashlib.sha256(data).hexdigest() != reference.sha256:
        raise StateError("its bytes do not have the SHA-256 that the state record names")
    return data
