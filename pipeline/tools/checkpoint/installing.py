"""Install snapshots that no worker wrote: the group continues from them after one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from pipeline.config.topics import LARGEST_DEAD_LETTER
from pipeline.errors import StateError
from pipeline.kafka.group import GroupTransaction
from pipeline.kafka.producer import flush
from pipeline.recovery.checkpoint_writer import (
    input_offsets,
    next_slot,
    snapshot_reference,
    write_snapshot,
    write_state,
)
from pipeline.recovery.libraries import note_libraries
from pipeline.task.state import State
from pipeline.tools.checkpoint.group import CommittedState, Group


class Replacement(NamedTuple):
    """A snapshot to continue from, and the state record to write with it."""

    committed_state: CommittedState
    """The state record that is committed now."""
    state: State
    """The state record to write; `install` sets its reference to the snapshot."""
    data: bytes
    """Bytes of the snapshot."""
    outcomes_learned: int
    """Outcomes that the snapshot has learned."""
    outcome_offset: int
    """No outcome from `outcomes_learned` on lies below this offset."""

    @classmethod
    def under(cls, settings: dict[str, str], committed_state: CommittedState, data: bytes) -> Replacement:
        """Return the replacement by a model that has learned all outcomes under other settings.

        Parameters
        ----------
        settings
            Settings of the model, as text by name.
        committed_state
            State record that is committed now.
        data
            Snapshot of the model.
        """
        state = committed_state.state.with_settings(settings)
        return cls(committed_state, state, data, state.outcomes, state.outcome_offset)


class NewSnapshot(NamedTuple):
    """A snapshot to write."""

    data: bytes
    slot: int
    outcomes_learned: int
    """Outcomes that it has learned."""
    outcome_offset: int
    """No outcome from `outcomes_learned` on lies below this offset."""


class NewCheckpoint(NamedTuple):
    """A state record to write, and its snapshot if that is new too."""

    state: State
    snapshot: NewSnapshot | None


def install(group: Group, replacements: Sequence[Replacement]) -> None:
    """Write snapshots, state records and the offsets that name them, as the group's only member.

    Parameters
    ----------
    group
        Group without members.
    replacements
        One replacement for each partition that changes.

    Raises
    ------
    KafkaException
        If the transaction was not committed, or if that is not known.
    StateError
        If the group has members, or had some since the state records were read. Nothing has changed then.
    """

    def unchanged() -> bool:
        return all(
            group.committed_state(committed_state.state.partition) == committed_state
            for committed_state, *_ in replacements
        )

    checkpoints = [
        NewCheckpoint(
            state,
            NewSnapshot(data, next_slot(committed_state.state.snapshot), outcomes_learned, outcome_offset),
        )
        for committed_state, state, data, outcomes_learned, outcome_offset in replacements
    ]
    write_checkpoints(group, checkpoints, unchanged)


def write_checkpoints(
    group: Group, checkpoints: Sequence[NewCheckpoint], unchanged: Callable[[], bool]
) -> None:
    """Write snapshots, state records and the offsets that name them in one transaction.

    Parameters
    ----------
    group
        Group without members.
    checkpoints
        One checkpoint for each partition that changes.
    unchanged
        Tells, while nobody else is a member, whether what the checkpoints were made from is still committed.

    Raises
    ------
    KafkaException
        If the transaction was not committed, or if that is not known.
    StateError
        As `install`.
    """
    transaction = GroupTransaction(group.config.kafka, group.config.worker, "install", LARGEST_DEAD_LETTER)
    with group.sole_member() as member:
        if not unchanged():
            raise StateError("a worker has gone on meanwhile. Nothing has changed: start this again")
        with transaction:
            states = [
                (state, write_state(transaction.producer, group.topics, state, group.signer))
                for state in map(note_libraries, _write_snapshots(group, transaction, checkpoints))
            ]
            flush(transaction.producer, transaction.timeout)
            offsets = [
                offset
                for state, report in states
                for offset in input_offsets(group.topics, state, report.offset)
            ]
            transaction.commit(member, offsets)


def _write_snapshots(
    group: Group, transaction: GroupTransaction, checkpoints: Sequence[NewCheckpoint]
) -> list[State]:
    """Write the snapshots, and return the state records that refer to them."""
    written = [
        write_snapshot(transaction.producer, group.topics, state.partition, snapshot.slot, snapshot.data)
        if snapshot is not None
        else []
        for state, snapshot in checkpoints
    ]
    flush(transaction.producer, transaction.timeout)
    return [
        state
        if snapshot is None
        else msgspec.structs.replace(
            state,
            snapshot=snapshot_reference(
                snapshot.data, snapshot.slot, reports, snapshot.outcomes_learned, snapshot.outcome_offset
            ),
        )
        for (state, snapshot), reports in zip(checkpoints, written, strict=True)
    ]
