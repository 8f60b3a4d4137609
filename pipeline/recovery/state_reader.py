"""Read a committed state record and the snapshot that it names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec
import structlog

from pipeline.config.topics import Topics
from pipeline.errors import StateError
from pipeline.kafka.committed import CommittedPosition
from pipeline.kafka.registry import decoders_of
from pipeline.log.partition_log import PartitionLog
from pipeline.model.model import Model
from pipeline.model.snapshot import snapshot_size, unpack
from pipeline.records.decoding import InputDecoder
from pipeline.records.inputs import KafkaMessage, Label
from pipeline.records.names import snapshot_key, state_key
from pipeline.recovery.signature import StateSigner, check_mac
from pipeline.recovery.state_check import RECOVER, StateOrigin, UnusableStateError, decode_state
from pipeline.task.state import SnapshotReference, State

MAX_CHUNK = 2**20
"""Bytes of a chunk of a snapshot, at most: the default limit of brokers."""
_log = structlog.get_logger()


def read_state(
    log: PartitionLog,
    position: CommittedPosition,
    signer: StateSigner | None = None,
    *,
    labels: InputDecoder[Label] | None = None,
) -> State:
    """Read the state record that was committed with the offsets.

    Parameters
    ----------
    log
        The log of the partition.
    position
        What the group has committed for it.
    signer
        Checks its MAC; None where `checkpoint.key` is not set.
    labels
        Decodes labels that wait; None for the decoder of commands, see `pipeline.kafka.registry.decoders_of`.

    Returns
    -------
    State
        The state record.

    Raises
    ------
    SchemaUnavailableError, RegistryError
        The schema of a label that waits is not known.
    StateError
        It is missing, of another version, of other offsets, not of a worker or not signed as it should be.
    """
    assert position.state_offset is not None
    topics, partition = log.topics, log.partition
    try:
        message = log.at(topics.checkpoints, position.state_offset)
    except StateError as error:
        raise UnusableStateError(
            f"the state record of partition {partition} is lost: {error}, which the group's offsets name. "
            f"Another writer's record with the key {state_key(partition)} has replaced it in compaction, or "
            f"records were deleted. {RECOVER}"
        ) from error
    state = state_of(message, topics, partition, signer, labels)
    found = (state.interactions.offset, state.labels.offset)
    if found != (position.interactions, position.labels):
        raise StateError(
            f"the group's offsets of partition {partition} are {position[:2]}, but its state record was "
            f"written for {found}: the offsets were set by hand. Set them back to go on"
        )
    return state


def state_of(
    message: KafkaMessage,
    topics: Topics,
    partition: int,
    signer: StateSigner | None,
    labels: InputDecoder[Label] | None = None,
) -> State:
    """Return the state record of a message of a partition.

    Parameters
    ----------
    message
        The message.
    topics
        The names of the topics.
    partition
        The partition's number.
    signer, labels
        As in `read_state`.

    Raises
    ------
    StateError
        It is of another version, not of a worker or not signed as it should be.
    """
    decoder = labels or decoders_of(topics).labels
    origin = StateOrigin(topics.checkpoints, partition, message.offset() or 0, topics.labels, decoder)
    value = message.value() or b""
    if message.key() != state_key(partition).encode():
        raise UnusableStateError(
            f"{origin}: this is no state record of the partition: its key is {message.key()!r:.80}, not "
            f"{state_key(partition)}. {RECOVER}"
        )
    check_mac(signer, value, message.headers() or (), partition, origin)
    return decode_state(value, origin)


def read_snapshot(log: PartitionLog, state: State, new_model: Callable[[], Model]) -> tuple[Model, State]:
    """Restore the model of the latest usable snapshot.

    Parameters
    ----------
    log
        The log of the partition.
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
            _restore(log, reference, model)
        except StateError as error:
            instead = "trying the one before it" if references else "learning all outcomes again instead"
            _log.warning(
                f"snapshot unusable, {instead}",
                partition=state.partition,
                outcomes=reference.outcomes_learned,
                reason=str(error),
            )
        else:
            previous = references[0] if references else None
            return model, msgspec.structs.replace(state, snapshot=reference, previous=previous)
    return new_model(), msgspec.structs.replace(state, snapshot=None, previous=None)


def _restore(log: PartitionLog, reference: SnapshotReference, model: Model) -> None:
    unpack(snapshot_bytes(log, reference, model), model)
    if model.outcomes_learned != reference.outcomes_learned:
        raise StateError(
            f"it has learned {model.outcomes_learned} outcomes, where the state record names "
            f"{reference.outcomes_learned}"
        )


def snapshot_bytes(log: PartitionLog, reference: SnapshotReference, model: Model | None = None) -> bytes:
    """Read the bytes of a snapshot.

    Parameters
    ----------
    log
        The log of the partition.
    reference
        Names the chunks.
    model
        A model of the snapshot's settings: the first chunk is checked against it before others are read.

    Returns
    -------
    bytes
        The snapshot.

    Raises
    ------
    StateError
        A chunk is missing or something else, or the bytes do not have the SHA-256 of the state record.
    """
    chunks: list[bytes] = []
    for number, offset in enumerate(reference.chunks):
        key = snapshot_key(log.partition, reference.slot, number)
        chunks.append(_chunk(log.at(log.topics.checkpoints, offset), key))
        if model is not None and number == 0:
            size = snapshot_size(chunks[0], model)
            if not (len(reference.chunks) - 1) * len(chunks[0]) < size <= len(reference.chunks) * MAX_CHUNK:
                raise StateError(f"its header names {size} bytes, but it has {len(reference.chunks)} chunks")
    data = b"".join(chunks)
    if hashlib.sha256(data).hexdigest() != reference.sha256:
        raise StateError("its bytes do not have the SHA-256 that the state record names")
    return data


def _chunk(message: KafkaMessage, key: str) -> bytes:
    """Return the bytes of a chunk, which has to have this key."""
    chunk = message.value() or b""
    if message.key() != key.encode() or len(chunk) > MAX_CHUNK:
        raise StateError(
            f"offset {message.offset()} holds {len(chunk)} bytes with the key {message.key()!r:.80}, not a "
            f"chunk with the key {key}"
        )
    return chunk
