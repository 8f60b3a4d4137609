"""A snapshot from a file becomes the one that the group continues from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from pipeline.blueprint import Blueprint
from pipeline.checkpoint.belonging import prove
from pipeline.checkpoint.group import Group
from pipeline.checkpoint.installing import Replacement, install
from pipeline.errors import StateError
from pipeline.log import decoded
from pipeline.model import Model
from pipeline.records import Outcome
from pipeline.recovery import read_snapshot, refuse_other_settings
from pipeline.snapshot import pack, unpack
from pipeline.state import State

_OUTCOMES = msgspec.json.Decoder(Outcome)


def import_snapshot(group: Group, partition: int, data: bytes) -> State:
    """Let a partition continue from a snapshot, if it is a fold of the partition's own outcomes.

    Returns
    -------
    State
        The state record that it was for. The outcomes since the snapshot are folded when a worker starts.

    Raises
    ------
    StateError
        If the bytes are no snapshot, or not one of this log and these settings, or the group has members.
    """
    group.refuse_members()
    saved = group.saved(partition)
    if saved is None:
        raise StateError(
            f"nothing was committed for partition {partition} yet that a snapshot could belong to"
        )
    blueprint = Blueprint(group.config)
    refuse_other_settings(saved.state, blueprint.settings(group.partitions))
    candidate = blueprint.new_model()
    unpack(data, candidate)
    if pack(candidate) != data:
        raise StateError("the file has a model of these settings in it, but it is not as a worker writes it")
    folded = candidate.folded
    if folded > saved.state.outcomes:
        raise StateError(
            f"the snapshot holds {folded} outcomes, but partition {partition} has only {saved.state.outcomes}"
        )
    lowest = _proved(group, saved.state, candidate, data, blueprint)
    replaced = saved.state.snapshot
    install(group, [Replacement(saved, data, folded, lowest, saved.state.settings, replaced)])
    return saved.state


def _proved(group: Group, state: State, candidate: Model, data: bytes, blueprint: Blueprint) -> int:
    """An offset below which no outcome lies that the candidate has not folded, once it is proved."""
    if state.snapshot is not None and hashlib.sha256(data).hexdigest() == state.snapshot.sha256:
        return state.snapshot.outcome_offset
    trusted, usable = read_snapshot(group.log, group.topics, state, blueprint.new_model)
    begin = usable.snapshot.outcome_offset if usable.snapshot else 0
    if candidate.folded < trusted.folded:
        begin = 0
    return prove(candidate, trusted, _outcomes(group, state.partition, begin), begin)


def _outcomes(group: Group, partition: int, begin: int) -> Iterator[tuple[int, Outcome]]:
    for message in group.log.read_to_end(group.topics.outcomes, partition, begin):
        yield message.offset() or 0, decoded(_OUTCOMES, message)
