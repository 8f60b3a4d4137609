"""Write a partition's checkpoint into a transaction: chunks of a snapshot, state record, offsets."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pipeline.config.topics import Topics
from pipeline.kafka.committed import metadata
from pipeline.kafka.producer import DeliveryReport
from pipeline.kafka.types import Producer, TopicPartition
from pipeline.records.encoding import encode_json
from pipeline.records.names import snapshot_key, state_key
from pipeline.recovery.signature import StateSigner
from pipeline.task.state import SnapshotReference, State

CHUNK = 900_000
"""Bytes of a snapshot in one message: the default limit of brokers is a mebibyte."""


def write_snapshot(
    producer: Producer, topics: Topics, partition: int, slot: int, data: bytes
) -> list[DeliveryReport]:
    """Write a snapshot's bytes into a slot; return the delivery reports of its chunks, in their order."""
    delivery_reports = [DeliveryReport() for _ in range(0, len(data), CHUNK)]
    for number, report in enumerate(delivery_reports):
        producer.produce(
            topics.checkpoints,
            data[number * CHUNK : (number + 1) * CHUNK],
            snapshot_key(partition, slot, number),
            partition,
            on_delivery=report,
        )
    return delivery_reports


def next_slot(snapshot: SnapshotReference | None) -> int:
    """Return the slot of the next snapshot: there are two, in turn, so that compaction keeps this one."""
    return 1 - snapshot.slot if snapshot else 0


def snapshot_reference(
    data: bytes,
    slot: int,
    delivery_reports: Sequence[DeliveryReport],
    outcomes_learned: int,
    outcome_offset: int,
) -> SnapshotReference:
    """Return what a state record holds of a snapshot whose chunks are written: see `SnapshotReference`."""
    return SnapshotReference(
        chunks=[report.offset for report in delivery_reports],
        sha256=hashlib.sha256(data).hexdigest(),
        slot=slot,
        outcomes_learned=outcomes_learned,
        outcome_offset=outcome_offset,
    )


def write_state(
    producer: Producer, topics: Topics, state: State, signer: StateSigner | None = None
) -> DeliveryReport:
    """Write a state record, with a MAC if there is a signer; return its delivery report."""
    report, value = DeliveryReport(), encode_json(state)
    producer.produce(
        topics.checkpoints,
        value,
        state_key(state.partition),
        state.partition,
        on_delivery=report,
        headers=None if signer is None else [*signer.headers(value, state.partition)],
    )
    return report


def input_offsets(topics: Topics, state: State, offset: int) -> list[TopicPartition]:
    """Return the input offsets of a state record, with the metadata that names its own offset."""
    note = metadata(offset)
    return [
        TopicPartition(topic, state.partition, position.offset, note)
        for topic, position in zip(topics.inputs, (state.interactions, state.labels), strict=True)
    ]
