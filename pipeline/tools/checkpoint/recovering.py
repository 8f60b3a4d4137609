"""Recover a partition whose committed state record is lost or cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from pipeline.errors import StateError
from pipeline.features.live_tables import Rows
from pipeline.kafka.committed import position_of
from pipeline.kafka.registry import decoders_of
from pipeline.log.decoding import decode_predictions
from pipeline.log.partition_log import PartitionLog
from pipeline.model.factory import ModelFactory
from pipeline.model.snapshot import pack
from pipeline.records.dead_letter import read_dead_letter
from pipeline.records.inputs import RawMessage
from pipeline.records.output_types import OutputTypes
from pipeline.recovery.state_check import UnusableStateError
from pipeline.recovery.state_reader import state_of
from pipeline.recovery.table_rows import replay_rows
from pipeline.task.state import State, TableState
from pipeline.tools.checkpoint.deriving import PartitionLogs, PartitionToDerive, derive_state
from pipeline.tools.checkpoint.group import Group
from pipeline.tools.checkpoint.installing import NewCheckpoint, NewSnapshot, write_checkpoints


class Recovered(msgspec.Struct, frozen=True):
    """What a partition continues from."""

    partition: int
    source: Literal["nothing committed", "usable", "found", "derived"]
    """Whether nothing had to be done; or its state record was found again, or derived from the topics."""
    outcomes: int
    """Outcomes that the state record counts."""
    reason: str | None = None
    """Why the committed state record cannot be used; None if it can."""


class _Lost(NamedTuple):
    """A partition without a usable state record."""

    partition: int
    offsets: tuple[int, int]
    """Committed offsets of interactions and labels."""
    reason: str


def recover(group: Group, progress: Callable[[int], None], partition: int | None = None) -> list[Recovered]:
    """Let a group continue in the partitions whose state record cannot be used.

    The newest state record of the committed offsets is written again, if there is one. Else the state is
    derived from all outputs and the processed inputs: the model learns all outcomes, and each message has to
    be accounted for. All partitions are committed in one transaction. Input offsets stay as they are.

    Parameters
    ----------
    group
        Group without members.
    progress
        Function to call now and then with the number of outcomes learned.
    partition
        The only partition to look at; None for all.

    Returns
    -------
    list of Recovered
        What each partition continues from.

    Raises
    ------
    ConfigError
        There is no such partition.
    StateError
        The group has members, or a state cannot be derived. Nothing has changed then.
    """
    group.refuse_members()
    recovered, checkpoints, lost = [], [], []
    for number in range(group.partitions) if partition is None else [partition]:
        found = _committed(group, number)
        if isinstance(found, Recovered):
            recovered.append(found)
            continue
        state, last = _find(group, found)
        if state is not None:
            checkpoint = NewCheckpoint(state, None)
        else:
            checkpoint = derive(group, number, found.offsets, last, progress)
        source: Literal["found", "derived"] = "derived" if state is None else "found"
        recovered.append(Recovered(number, source, checkpoint.state.outcomes, found.reason))
        checkpoints.append(checkpoint)
        lost.append(found)

    def unchanged() -> bool:
        return all(_committed_offsets(group, each.partition) == each.offsets for each in lost)

    if checkpoints:
        write_checkpoints(group, checkpoints, unchanged)
    return recovered


def _committed(group: Group, partition: int) -> Recovered | _Lost:
    """Return what a partition continues from, or that its state record cannot be used."""
    try:
        found = group.committed_state(partition)
    except StateError as error:
        offsets = _committed_offsets(group, partition)
        lost = isinstance(error, UnusableStateError) or not _names_a_state(group, partition)
        if offsets is None or not lost:
            raise
        return _Lost(partition, offsets, str(error))
    if found is None:
        return Recovered(partition, "nothing committed", 0)
    return Recovered(partition, "usable", found.state.outcomes)


def _names_a_state(group: Group, partition: int) -> bool:
    """Whether the committed offsets name a state record."""
    try:
        position_of(partition, group.committed_offsets([partition])[partition], group.topics, lambda _: 0)
    except StateError:
        return False
    return True


def _committed_offsets(group: Group, partition: int) -> tuple[int, int] | None:
    """Return the committed offsets of both inputs; None if one has none."""
    committed = group.committed_offsets([partition])[partition]
    interactions, labels = (committed[topic].offset for topic in group.topics.inputs)
    return None if interactions is None or labels is None else (interactions, labels)


def _find(group: Group, lost: _Lost) -> tuple[State | None, State | None]:
    """Return the newest state record of the committed offsets, and the newest of any offsets."""
    newest = None
    matching = None
    for message in group.log(lost.partition).messages(group.topics.checkpoints):
        try:
            state = state_of(message, group.topics, lost.partition, group.signer)
        except StateError:  # a chunk, or a record of another writer
            continue
        newest = state
        if (state.interactions.offset, state.labels.offset) == lost.offsets:
            matching = state
    return matching, newest


def derive(
    group: Group,
    partition: int,
    offsets: tuple[int, int],
    last: State | None,
    progress: Callable[[int], None],
) -> NewCheckpoint:
    """Derive the state record of a partition from its topics: see `derive_state`.

    Parameters
    ----------
    group
        Group whose configuration is that of its workers.
    partition
        Number of the partition.
    offsets
        Committed offsets of interactions and labels.
    last
        The last usable state record, of earlier offsets, if there is one.
    progress
        Function to call now and then with the number of outcomes learned.

    Returns
    -------
    NewCheckpoint
        The state record, and a snapshot of all outcomes.

    Raises
    ------
    StateError
        The state cannot be derived.
    """
    topics, factory = group.topics, ModelFactory(group.config)
    types = OutputTypes.of(topics.stream)
    model = factory.new_model()
    target = PartitionToDerive(
        partition,
        topics.inputs,
        offsets,
        factory.settings(group.partitions),
        group.config.join,
        decoders_of(topics),
        shares=group.config.sharing.interval_for(group.partitions) is not None,
        tables={name: topics.table(name) for name in topics.stream.tables},
    )
    log = group.log(partition)
    with group.second_log(partition) as predictions, group.second_log(partition) as outcomes:
        logs = PartitionLogs(
            predictions=(
                (message.offset() or 0, each)
                for message in predictions.messages(topics.predictions)
                for each in decode_predictions(types, message)
            ),
            outcomes=outcomes.records(topics.outcomes, types.outcomes),
            dead_letters=map(read_dead_letter, log.messages(topics.dead_letters)),
            interactions=map(RawMessage.of, log.messages(topics.interactions)),
            labels=map(RawMessage.of, log.messages(topics.labels)),
            shares=lambda other: group.log(other).records(topics.shared, types.shares),
            table=lambda name, offset: _table(log, factory, name, offset),
        )
        state, outcome_offset = derive_state(target, logs, model, last, progress)
    return NewCheckpoint(state, NewSnapshot(pack(model), 0, state.outcomes, outcome_offset))


def _table(log: PartitionLog, factory: ModelFactory, name: str, offset: int) -> TableState:
    """Return the state of a live table that was applied up to an offset."""
    [features] = [each for each in factory.features.tables if each.name == name]
    rows = Rows(features)
    replay_rows(rows, log.table(name), offset)
    return TableState(offset, len(rows), rows.digest)
