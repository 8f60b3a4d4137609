"""How a partition's state gets into a transaction: snapshots in chunks, the state record, the offsets."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from pipeline.kafka.committed import metadata
from pipeline.kafka.topics import Topics
from pipeline.records.encoding import encode_json
from pipeline.task.state import SnapshotReference, State

CHUNK = 900_000
"""Bytes of a snapshot in one message: brokers take a mebibyte unless told otherwise."""


class DeliveryReport:
    """Learns at which offset a message was written."""

    def __init__(self) -> None:
        self._offset: int | None = None
        self._error: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Take the delivery report."""
        self._error = error
        if error is None:
            self._offset = message.offset()

    @property
    def offset(self) -> int:
        """The offset, once the producer was flushed."""
        if self._error is not None:
            raise KafkaException(self._error)
        assert self._offset is not None, "the producer was not flushed"
        return self._offset


def flush(producer: Producer, patience: float) -> None:
    """Wait until all that was produced is written.

    Raises
    ------
    KafkaException
        If it is not within `patience` seconds.
    """
    try:
        left = producer.flush(patience)
    except SystemError as error:
        # What a callback told the client, a fatal error for one, comes as the cause or gets lost on its way.
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        producer.abort_transaction(patience)  # which a fatal error forbids, and so it is said after all
        raise KafkaException(KafkaError(KafkaError._FAIL, f"the client gave up a flush: {error}")) from error
    if left:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "records were not acknowledged in time"))


def write_snapshot(
    producer: Producer, topics: Topics, partition: int, slot: int, data: bytes
) -> list[DeliveryReport]:
    """Write a snapshot's bytes into a slot; the receipts are of its chunks, in their order."""
    delivery_reports = [DeliveryReport() for _ in range(0, len(data), CHUNK)]
    for number, receipt in enumerate(delivery_reports):
        producer.produce(
            topics.checkpoints,
            data[number * CHUNK : (number + 1) * CHUNK],
            f"{partition}/snapshot/{slot}/{number}",
            partition,
            on_delivery=receipt,
        )
    return delivery_reports


def next_slot(snapshot: SnapshotReference | None) -> int:
    """The slot for the snapshot after this one: of two, in turn, so that compaction leaves this one."""
    return 1 - snapshot.slot if snapshot else 0


def snapshot_reference(
    data: bytes, slot: int, delivery_reports: Sequence[DeliveryReport], folded: int, outcome_offset: int
) -> SnapshotReference:
    """What a state record says of a snapshot, once its chunks are written: see `SnapshotReference`."""
    return SnapshotReference(
        chunks=[receipt.offset for receipt in delivery_reports],
        sha256=hashlib.sha256(data).hexdigest(),
        slot=slot,
        folded=folded,
        outcome_offset=outcome_offset,
    )


def write_state(producer: Producer, topics: Topics, state: State) -> DeliveryReport:
    """Write a state record."""
    receipt = DeliveryReport()
    producer.produce(
        topics.checkpoints,
        encode_json(state),
        f"{state.partition}/state",
        state.partition,
        on_delivery=receipt,
    )
    return receipt


def input_offsets(topics: Topics, state: State, offset: int) -> list[TopicPartition]:
    """The input offsets of a state record, to be committed with the offset at which it was written."""
    note = metadata(offset)
    return [
        TopicPartition(topic, state.partition, position.offset, note)
        for topic, position in zip(topics.inputs, (state.interactions, state.labels), strict=True)
    ]
