"""One transaction: everything that came of a batch, or nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from pipeline.deadline import within
from pipeline.records import encode
from pipeline.recovery import metadata
from pipeline.snapshot import pack
from pipeline.state import SnapshotReference
from pipeline.task import Batch, DeadLetter, Task
from pipeline.topics import Topics

CHUNK = 900_000
"""Bytes of a snapshot in one message: brokers take a mebibyte unless told otherwise."""


class Part(NamedTuple):
    """What one partition has to say in a transaction."""

    task: Task
    batch: Batch
    snapshot: bool
    """Whether the model's state is to be written too."""


class Receipt:
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


class Writer:
    """Writes transactions.

    Parameters
    ----------
    producer
        Transactional and initialised.
    topics
        Where to write.
    settings
        What the outputs depend on; goes into every state record.
    patience
        Seconds that each step may take.
    """

    def __init__(self, producer: Producer, topics: Topics, settings: dict[str, Any], patience: float) -> None:
        self._producer = producer
        self._topics = topics
        self._settings = settings
        self._patience = patience

    def commit(self, parts: Sequence[Part], consumer: Consumer) -> None:
        """Write the parts, their state records and the input offsets, all in one transaction.

        Raises
        ------
        KafkaException
            If it did not come about, or if that is not known. Memory is then ahead of the log, and
            has to be thrown away.
        """
        self._producer.begin_transaction()
        receipts = [self._write_records(part) for part in parts]
        self._write_snapshots([part.task for part in parts if part.snapshot])
        states = [self._write_state(part.task) for part in parts]
        self._flush()
        offsets = [
            place
            for part, state in zip(parts, states, strict=True)
            for place in self._places(part.task, state.offset)
        ]
        group = consumer.consumer_group_metadata()
        within(self._patience, self._producer.send_offsets_to_transaction, offsets, group)
        self._producer.commit_transaction(self._patience)
        for part, (prediction, outcome) in zip(parts, receipts, strict=True):
            part.task.note_offsets(
                part.batch, prediction.offset if prediction else None, outcome.offset if outcome else None
            )

    def _flush(self) -> None:
        try:
            left = self._producer.flush(self._patience)
        except SystemError as error:
            # The client sets an exception for a fatal error and goes on to call delivery callbacks with it.
            raise error.__cause__ if isinstance(error.__cause__, KafkaException) else error from error
        if left:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "records were not acknowledged in time"))

    def _write_records(self, part: Part) -> tuple[Receipt | None, Receipt | None]:
        """Write what came of a batch; the receipts are of the first prediction and the first outcome."""
        partition, batch = part.task.partition, part.batch
        for letter in batch.dead_letters:
            self._write_dead_letter(partition, letter)
        receipts = []
        for topic, records in (
            (self._topics.predictions, batch.predictions),
            (self._topics.outcomes, batch.outcomes),
        ):
            receipt = first = Receipt() if records else None
            for record in records:
                self._producer.produce(
                    topic,
                    encode(record),
                    str(record.user_id),
                    partition,
                    timestamp=record.timestamp,
                    on_delivery=first,
                )
                first = None
            receipts.append(receipt)
        return receipts[0], receipts[1]

    def _write_dead_letter(self, partition: int, letter: DeadLetter) -> None:
        source = letter.source
        about = {
            "exception": letter.fault,
            "message": letter.reason,
            "topic": source.topic,
            "partition": str(source.partition),
            "offset": str(source.offset),
        }
        errors = [(f"__streams.errors.{name}", value.encode()) for name, value in about.items()]
        headers: list[tuple[str, str | bytes | None]] = [*source.headers, *errors]
        self._producer.produce(
            self._topics.dead_letters, source.value, source.key, partition, headers=headers
        )

    def _write_snapshots(self, tasks: Sequence[Task]) -> None:
        """Write models whole, in turn into two slots, so that compaction leaves the one before."""
        written = []
        for task in tasks:
            data = pack(task.model)
            slot = 1 - task.snapshot.slot if task.snapshot else 0
            receipts = [Receipt() for _ in range(0, len(data), CHUNK)]
            for number, receipt in enumerate(receipts):
                self._producer.produce(
                    self._topics.checkpoints,
                    data[number * CHUNK : (number + 1) * CHUNK],
                    f"{task.partition}/snapshot/{slot}/{number}",
                    task.partition,
                    on_delivery=receipt,
                )
            written.append((task, slot, data, receipts))
        if written:
            self._flush()
        for task, slot, data, receipts in written:
            task.snapshot = SnapshotReference(
                chunks=[receipt.offset for receipt in receipts],
                sha256=hashlib.sha256(data).hexdigest(),
                slot=slot,
                folded=task.model.folded,
                outcome_offset=task.outcome_marks.floor(task.model.folded),
            )

    def _write_state(self, task: Task) -> Receipt:
        receipt = Receipt()
        self._producer.produce(
            self._topics.checkpoints,
            encode(task.state(self._settings)),
            f"{task.partition}/state",
            task.partition,
            on_delivery=receipt,
        )
        return receipt

    def _places(self, task: Task, state_offset: int) -> list[TopicPartition]:
        note = metadata(state_offset)
        return [
            TopicPartition(topic, task.partition, inlet.position.offset, note)
            for topic, inlet in zip(self._topics.inputs, (task.interactions, task.labels), strict=True)
        ]
