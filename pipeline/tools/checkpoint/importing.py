"""Import a snapshot from a file, so that the group continues from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from pipeline.errors import StateError
from pipeline.model.factory import ModelFactory
from pipeline.model.model import Model
from pipeline.model.snapshot import pack, unpack
from pipeline.records.outputs import Outcome
from pipeline.recovery.settings_check import rebuild_command, refuse_other_settings
from pipeline.recovery.state_reader import read_snapshot
from pipeline.task.state import State
from pipeline.tools.checkpoint.belonging import verify
from pipeline.tools.checkpoint.group import Group
from pipeline.tools.checkpoint.installing import Replacement, install


def import_snapshot(group: Group, partition: int, data: bytes) -> State:
    """Let a partition continue from a snapshot that has learned the first outcomes of its log.

    Parameters
    ----------
    group
        Group without members.
    partition
        Number of the partition.
    data
        Bytes of the snapshot.

    Returns
    -------
    State
        Former state record of the partition. A worker learns the outcomes since the snapshot when it starts.

    Raises
    ------
    StateError
        If the bytes are no snapshot of this log and these settings, or the group has members.
    """
    group.refuse_members()
    committed_state = group.committed_state(partition)
    if committed_state is None:
        raise StateError(
            f"nothing was committed for partition {partition} yet, so no snapshot can belong to it"
        )
    factory = ModelFactory(group.config)
    refuse_other_settings(committed_state.state, factory.settings(group.partitions))
    try:
        candidate = _read(data, factory, committed_state.state)
        outcomes_learned = candidate.outcomes_learned
        lowest = _verified(group, committed_state.state, candidate, data, factory)
    except StateError:
        _refuse_earlier_epoch(group, committed_state.state, data, factory)
        raise
    state = msgspec.structs.replace(committed_state.state, previous=committed_state.state.snapshot)
    install(group, [Replacement(committed_state, state, data, outcomes_learned, lowest)])
    return committed_state.state


def _read(data: bytes, factory: ModelFactory, state: State) -> Model:
    candidate = factory.new_model()
    unpack(data, candidate)
    if pack(candidate) != data:
        raise StateError(
            "the file holds a model of these settings, but not in the format that a worker writes"
        )
    if candidate.outcomes_learned > state.outcomes:
        raise StateError(
            f"the snapshot holds {candidate.outcomes_learned} outcomes, but partition {state.partition} has "
            f"only {state.outcomes}"
        )
    return candidate


def _verified(group: Group, state: State, candidate: Model, data: bytes, factory: ModelFactory) -> int:
    """Verify the candidate; return an offset below which there is no outcome that it has not learned."""
    if state.snapshot is not None and hashlib.sha256(data).hexdigest() == state.snapshot.sha256:
        return state.snapshot.outcome_offset
    trusted, usable = read_snapshot(group.log(state.partition), state, factory.new_model)
    begin = usable.snapshot.outcome_offset if usable.snapshot else 0
    if candidate.outcomes_learned < trusted.outcomes_learned:
        begin = 0
    return verify(candidate, trusted, _outcomes(group, state.partition, begin), begin)


def _refuse_earlier_epoch(group: Group, state: State, data: bytes, factory: ModelFactory) -> None:
    """Raise `StateError` if a snapshot is one of an earlier epoch of settings of this log."""
    for epoch in state.earlier:
        if _is_of_log(
            factory.with_saved_settings(epoch.settings), data, _outcomes(group, state.partition, 0)
        ):
            changed = {
                name: text for name, text in epoch.settings.items() if state.settings.get(name) != text
            }
            raise StateError(
                f"the snapshot is of an earlier settings epoch of this log, which ended after "
                f"{epoch.outcomes} outcomes and had other settings. To return to these, run "
                f"`{rebuild_command(changed)}`"
            )


def _is_of_log(factory: ModelFactory, data: bytes, outcomes: Iterator[tuple[int, Outcome]]) -> bool:
    candidate = factory.new_model()
    try:
        unpack(data, candidate)
        verify(candidate, factory.new_model(), outcomes, begin=0)
    except StateError:
        return False
    return True


def _outcomes(group: Group, partition: int, begin: int) -> Iterator[tuple[int, Outcome]]:
    log = group.log(partition)
    return log.records(group.topics.outcomes, log.types.outcomes, begin)
