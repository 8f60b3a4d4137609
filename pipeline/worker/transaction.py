"""Write transactions: all records of a batch, or none, while the next batch is processed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import structlog
from confluent_kafka import KafkaException, Producer

from pipeline.config.topics import Topics
from pipeline.kafka.batch_producer import BatchProducer
from pipeline.kafka.committed import CommittedPosition
from pipeline.kafka.deadline import BackgroundCall
from pipeline.kafka.output_values import Encoders
from pipeline.kafka.producer import DeliveryReport, abort_if_required, flush
from pipeline.kafka.topics import DEFAULT_LIMITS
from pipeline.model.snapshot import pack
from pipeline.records.dead_letter import dead_letter_record
from pipeline.records.encoding import encode
from pipeline.recovery.checkpoint_writer import (
    input_offsets,
    next_slot,
    snapshot_reference,
    write_snapshot,
    write_state,
)
from pipeline.recovery.signature import StateSigner
from pipeline.task.batch import Batch
from pipeline.task.plan import DeadLetter
from pipeline.task.task import Task
from pipeline.worker.encoder import EncodedRecords, RecordEncoder

_log = structlog.get_logger()

ABORT_GRACE = 5.0
"""Seconds for which a transaction is waited for after its timeout: brokers abort it some time later."""


class PartitionCommit(NamedTuple):
    """The part of one partition in a transaction."""

    task: Task
    batch: Batch
    encoder: RecordEncoder
    """The partition's encoder, which has encoded all batches before this one."""
    snapshot: bool
    """Whether the model's state is to be written too."""


DeliveryReports: TypeAlias = tuple[DeliveryReport | None, DeliveryReport | None]
"""Of the first prediction and the first outcome of a batch, where there is one."""


class Commit:
    """A transaction that is being committed.

    Parameters
    ----------
    parts
        Parts of the transaction.
    delivery_reports
        Delivery reports of each part's first prediction and first outcome.
    call
        Commits, and returns the committed position of each part.
    timeout
        Seconds that it may take.
    """

    def __init__(
        self,
        parts: Sequence[PartitionCommit],
        delivery_reports: list[DeliveryReports],
        call: BackgroundCall[list[CommittedPosition]],
        timeout: float,
    ) -> None:
        self.parts = parts
        self._delivery_reports = delivery_reports
        self._call = call
        self._end = time.monotonic() + timeout

    @property
    def done(self) -> bool:
        """Whether it is committed, or failed."""
        return self._call.done

    @property
    def seconds(self) -> float | None:
        """How long it took; None until it is committed, or failed."""
        return self._call.seconds

    def wait(self) -> list[CommittedPosition]:
        """Wait until it is committed, and note where its records are: step 8 of `TransactionWriter.commit`.

        Returns
        -------
        list of CommittedPosition
            Position of each part, from which a restart would begin now.

        Raises
        ------
        KafkaException
            If it failed, or if that is not known.
        """
        positions = self._call.result(max(0.0, self._end - time.monotonic()))
        for part, (prediction, outcome) in zip(self.parts, self._delivery_reports, strict=True):
            part.task.note_offsets(
                part.batch, prediction.offset if prediction else None, outcome.offset if outcome else None
            )
        return positions


class InFlightCommit:
    """At most one transaction that is under way.

    Parameters
    ----------
    producer
        Aborts a transaction that failed, so that readers need not wait for its timeout.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._commit: Commit | None = None
        self.seconds = 0.0
        """How long the last one took to be committed, after its records were encoded."""

    @property
    def done(self) -> bool:
        """Whether there is one that is committed, or failed."""
        return self._commit is not None and self._commit.done

    @property
    def under_way(self) -> bool:
        """Whether there is one that was begun and not ended."""
        return self._commit is not None

    def begin(self, write: Callable[[], Commit]) -> None:
        """Write a transaction; the one before has to be ended."""
        assert self._commit is None, "a transaction is under way"
        try:
            self._commit = write()
        except KafkaException as error:
            abort_if_required(self._producer, error)
            raise

    def end(self) -> list[tuple[PartitionCommit, CommittedPosition]]:
        """Wait for the transaction in flight, if any; return its parts and their committed positions.

        Raises
        ------
        KafkaException
            If it failed, or if that is not known.
        """
        if self._commit is None:
            return []
        try:
            positions = self._commit.wait()
        except KafkaException as error:
            abort_if_required(self._producer, error)
            raise
        self.seconds = self._commit.seconds or 0.0
        parts, self._commit = self._commit.parts, None
        return list(zip(parts, positions, strict=True))

    def abandon(self) -> None:
        """Abandon the transaction in flight."""
        self._commit = None


class TransactionWriter:
    """Writes transactions.

    Parameters
    ----------
    producer
        Transactional and initialised.
    topics
        Where to write.
    settings
        What the outputs depend on; goes into every state record.
    timeout
        Seconds after which brokers abort a transaction. It is given up a little later.
    signer
        Signs state records; None where `checkpoint.key` is not set.
    encoders
        Of the topics whose records are not plain JSON.
    room
        Bytes of a dead letter, at most.
    """

    def __init__(
        self,
        producer: Producer,
        topics: Topics,
        settings: dict[str, str],
        timeout: float,
        signer: StateSigner | None = None,
        *,
        encoders: Encoders = MappingProxyType({}),
        room: int = DEFAULT_LIMITS.dead_letter,
    ) -> None:
        self._room = room
        self._encoders = encoders
        self._producer = producer
        self._batches = BatchProducer(producer)
        self._topics = topics
        self._settings = settings
        self._timeout = timeout
        self._signer = signer
        self.snapshot_sizes: dict[int, int] = {}
        """Bytes of the last snapshot by partition."""
        self.cut: dict[int, int] = {}
        """Dead letters of the last batch that were cut, by partition."""

    def commit(self, parts: Sequence[PartitionCommit], group_metadata: object) -> Commit:
        """Commit the parts, their state records and the input offsets, all in one transaction.

        Steps 1 to 4 are done before this returns. Steps 5 to 7 are done in the background, while tasks go on
        with the next batch; nothing of that one is written before step 8. Until step 7 has succeeded, readers
        of committed records see nothing of the transaction, and a restart begins where the one before ended.

        ==== =================================== =========================================================
        Step What is done                        What a failure leaves
        ==== =================================== =========================================================
        1    Begin the transaction               Nothing. The session ends, and all is restored
        2    Produce the records of each batch   Records that are aborted: by this client, by the next one
                                                 of its name, or by the brokers after the timeout
        3    Produce snapshots, and wait for     The same. The snapshots before them stay
             their offsets
        4    Produce state records, which name   The same
             snapshots and positions
        5    Wait until brokers have all records The same
        6    Send the input offsets, each with   The same. Brokers refuse those of who was lost to the
             the offset of its state record      group or has another worker of its name
        7    Commit                              It is committed or not, and the restart finds out which
        8    Note where the records are, and     Nothing that a restart needs: it reads the state record
             forget what is closed (`Commit`,
             `pipeline.worker.partition`)
        ==== =================================== =========================================================

        Parameters
        ----------
        parts
            What to write.
        group_metadata
            The consumer's `consumer_group_metadata` when partitions were assigned: brokers refuse offsets of
            a former member. Asking for it each time costs a third of a millisecond, and returns what the
            client knows by then.

        Raises
        ------
        KafkaException
            If it cannot be written. Memory is then ahead of the log, and has to be restored.
        """
        end = time.monotonic() + self._timeout + ABORT_GRACE

        def left() -> float:
            return max(0.1, end - time.monotonic())

        self._producer.begin_transaction()  # 1
        delivery_reports = [self._produce_batch(part) for part in parts]  # 2
        self._produce_snapshots([part.task for part in parts if part.snapshot])  # 3
        states = [part.task.state(self._settings) for part in parts]
        written = [write_state(self._producer, self._topics, state, self._signer) for state in states]  # 4

        def finish() -> list[CommittedPosition]:
            flush(self._producer, left())  # 5
            positions = [
                CommittedPosition(state.interactions.offset, state.labels.offset, report.offset)
                for state, report in zip(states, written, strict=True)
            ]
            offsets = [
                offset
                for state, report in zip(states, written, strict=True)
                for offset in input_offsets(self._topics, state, report.offset)
            ]
            self._producer.send_offsets_to_transaction(offsets, group_metadata, left())  # 6
            self._producer.commit_transaction(left())  # 7
            return positions

        return Commit(parts, delivery_reports, BackgroundCall(finish), left() + 1.0)

    def _produce_batch(self, part: PartitionCommit) -> DeliveryReports:
        """Produce a batch; return the delivery reports of the first prediction and the first outcome."""
        partition, batch = part.task.partition, part.batch
        self._produce_dead_letters(partition, batch.dead_letters)
        for share in batch.shares:
            self._producer.produce(self._topics.shared, encode(share), str(partition), partition)
        encoded = part.encoder.encode(batch)
        first_prediction = self._produce_encoded(self._topics.predictions, partition, encoded.predictions)
        first_outcome = self._produce_encoded(self._topics.outcomes, partition, encoded.outcomes)
        self._produce_encoded(self._topics.label_requests, partition, encoded.requests)
        return first_prediction, first_outcome

    def _produce_encoded(self, topic: str, partition: int, records: EncodedRecords) -> DeliveryReport | None:
        """Produce records; return the delivery report of the first, if there are any."""
        if not len(records.values):
            return None
        values = records.values
        if encode_values := self._encoders.get(topic):
            values = encode_values(values)
        return self._batches.produce(topic, partition, values, records.keys, records.timestamps)

    def _produce_dead_letters(self, partition: int, dead_letters: Sequence[DeadLetter]) -> None:
        """Produce dead letters, and cut those that are too large for their topic."""
        topic, cut = self._topics.dead_letters, 0
        for source, fault, reason in dead_letters:
            record = dead_letter_record(source, fault, reason, self._room)
            self._producer.produce(topic, record.value, record.key, partition, headers=[*record.headers])
            cut += record.cut
        self.cut[partition] = cut
        if cut:
            _log.warning(
                "dead letters were cut: their messages do not fit, and stay in the input",
                partition=partition,
                dead_letters=cut,
                limit=self._room,
            )

    def _produce_snapshots(self, tasks: Sequence[Task]) -> None:
        """Produce a snapshot of each model, and wait for the offsets of its chunks."""
        written = []
        for task in tasks:
            data, slot = pack(task.model), next_slot(task.snapshot)
            delivery_reports = write_snapshot(self._producer, self._topics, task.partition, slot, data)
            written.append((task, slot, data, delivery_reports))
        if written:
            flush(self._producer, self._timeout)
        for task, slot, data, delivery_reports in written:
            self.snapshot_sizes[task.partition] = len(data)
            outcomes_learned = task.model.outcomes_learned
            task.snapshot_written(
                snapshot_reference(
                    data,
                    slot,
                    delivery_reports,
                    outcomes_learned,
                    task.outcome_offsets.floor(outcomes_learned),
                )
            )
