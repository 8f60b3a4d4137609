"""Install snapshots that no worker wrote: the group continues from them after one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from pipeline.errors import StateError
from pipeline.kafka.group import GroupTransaction
from pipeline.kafka.producer import flush
from pipeline.kafka.topics import LARGEST_DEAD_LETTER
from pipeline.recovery.checkpoint_writer import (
    input_offsets,
    next_slot,
    snapshot_reference,
    write_snapshot,
    write_state,
)
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
    folded: int
    """Outcomes that the snapshot has learned."""
    outcome_offset: int
    """No outcome from `folded` on lies below this offset."""

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
    transaction = GroupTransaction(group.config, "install", LARGEST_DEAD_LETTER)
    with group.sole_member() as member:
        for committed_state, *_ in replacements:
            if group.committed_state(committed_state.state.partition) != committed_state:
                raise StateError("a worker has gone on meanwhile. Nothing has changed: start this again")
        with transaction:
            states = [
                (state, write_state(transaction.producer, group.topics, state, group.signer))
                for state in _write_snapshots(group, transaction, replacements)
            ]
            flush(transaction.producer, transaction.timeout)
            offsets = [
                offset
                for state, report in states
                for offset in input_offsets(group.topics, state, report.offset)
            ]
            transaction.commit(member, offsets)


def _write_snapshots(
    group: Group, transaction: GroupTransaction, replacements: Sequence[Replacement]
) -> list[State]:
    """Write the snapshots, and return the state records that refer to them."""
    written = []
    for committed_state, _, data, *_ in replacements:
        slot = next_slot(committed_state.state.snapshot)
        partition = committed_state.state.partition
        reports = write_snapshot(transaction.producer, group.topics, partition, slot, data)
        written.append((slot, reports))
    flush(transaction.producer, transaction.timeout)
    return [
        msgspec.structs.replace(
            state, snapshot=snapshot_reference(data, slot, reports, folded, outcome_offset)
        )
        for (_, state, data, folded, outcome_offset), (slot, reports) in zip(
            replacements, written, strict=True
        )
    ]
