"""Snapshots that no worker wrote become what the group continues from, all in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from pipeline.errors import StateError
from pipeline.kafka.clients import transactional_producer
from pipeline.kafka.committed import TIMEOUT
from pipeline.kafka.deadline import BackgroundCall
from pipeline.kafka.topics import LARGEST_DEAD_LETTER
from pipeline.recovery.checkpoint_writer import (
    flush,
    input_offsets,
    next_slot,
    snapshot_reference,
    write_snapshot,
    write_state,
)
from pipeline.task.state import State
from pipeline.tools.checkpoint.group import CommittedState, Group

MEMBERSHIP_ERRORS: Final = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.UNKNOWN_MEMBER_ID,
}
"""What the coordinator says to offsets of a group whose members have changed."""


class Replacement(NamedTuple):
    """A snapshot to continue from, and the state record to write with it."""

    committed_state: CommittedState
    """The state record that is there."""
    state: State
    """The one to come; what it says of the snapshot is filled in."""
    data: bytes
    folded: int
    """Outcomes in it."""
    outcome_offset: int
    """No outcome from `folded` on lies below this offset."""


def install(group: Group, replacements: Sequence[Replacement]) -> None:
    """Write snapshots, state records and the offsets that name them, as the group's only member.

    Raises
    ------
    KafkaException
        If the transaction did not come about, or if that is not known.
    StateError
        If the group has members, or had some since the state records were read. Nothing has changed then.
    """
    producer = transactional_producer(group.config, "install", LARGEST_DEAD_LETTER)
    producer.init_transactions(TIMEOUT)
    with group.sole_member() as consumer:
        for replacement in replacements:
            if (
                group.committed_state(replacement.committed_state.state.partition)
                != replacement.committed_state
            ):
                raise StateError("a worker has gone on meanwhile. Nothing has changed: start this again")
        producer.begin_transaction()
        try:
            _write(group, producer, consumer, replacements)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                producer.abort_transaction(TIMEOUT)
            if error.args[0].code() in MEMBERSHIP_ERRORS:
                raise StateError(
                    "a worker has joined meanwhile. Nothing has changed: stop it first"
                ) from error
            raise


def _write(group: Group, producer: Producer, consumer: Consumer, replacements: Sequence[Replacement]) -> None:
    topics, timeout = group.topics, group.config.worker.transaction_timeout / 1000
    snapshots = []
    for committed_state, _, data, *_ in replacements:
        slot = next_slot(committed_state.state.snapshot)
        snapshots.append(
            (slot, write_snapshot(producer, topics, committed_state.state.partition, slot, data))
        )
    flush(producer, timeout)
    states = [
        msgspec.structs.replace(
            state, snapshot=snapshot_reference(data, slot, delivery_reports, folded, outcome_offset)
        )
        for (_, state, data, folded, outcome_offset), (slot, delivery_reports) in zip(
            replacements, snapshots, strict=True
        )
    ]
    written = [write_state(producer, topics, state) for state in states]
    flush(producer, timeout)
    offsets = [
        topic_partition
        for state, receipt in zip(states, written, strict=True)
        for topic_partition in input_offsets(topics, state, receipt.offset)
    ]
    group = consumer.consumer_group_metadata()
    BackgroundCall(lambda: producer.send_offsets_to_transaction(offsets, group)).result(timeout)
    producer.commit_transaction(timeout)
