"""What a worker holds between two faults: clients, tasks, and the loop over them."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Self

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from pipeline.config.tree import Config
from pipeline.errors import StateError
from pipeline.kafka.clients import group_consumer, heartbeat_interval, transactional_producer
from pipeline.kafka.committed import TIMEOUT, CommittedPosition, committed, committed_position
from pipeline.kafka.topics import LARGEST_DEAD_LETTER, topics_of
from pipeline.model.model import Model
from pipeline.recovery.restore import recover
from pipeline.task.batch import Batch
from pipeline.task.task import Task
from pipeline.worker.clock import IdleAdvance
from pipeline.worker.encoder import RecordEncoder
from pipeline.worker.membership import Membership
from pipeline.worker.metrics import Gauges
from pipeline.worker.progress import Progress
from pipeline.worker.share_reader import make_exchange
from pipeline.worker.source import ConsumerSource
from pipeline.worker.throttle import DeadLetterThrottle
from pipeline.worker.transaction import InFlightCommit, PartitionCommit, TransactionWriter

POLL_TIMEOUT = 0.1
"""Seconds to wait for a first message."""
HEARTBEAT_GRACE = 5.0
"""Seconds within which the group answers a heartbeat, and tells a worker that was away what it has missed."""

_log = structlog.get_logger()


class Session:
    """Polls, advances and commits until told to stop, or until something fails.

    Parameters
    ----------
    config
        The whole configuration.
    instance
        The worker's name, by which older workers of that name are fenced.
    new_model
        Makes a model that has seen nothing.
    gauges
        Where to tell what is held.
    settings
        What the outputs depend on.

    Raises
    ------
    KafkaException
        From any method: throw the session away and start another.
    StateError
        If what the topics hold does not fit together.
    """

    def __init__(
        self,
        config: Config,
        instance: str,
        new_model: Callable[[], Model],
        gauges: Gauges,
        settings: dict[str, str],
    ) -> None:
        self.config = config
        self.topics = topics_of(config)
        self._new_model = new_model
        self._settings = settings
        self._tasks: dict[int, Task] = {}
        self._restoring: dict[int, Generator[Task | int]] = {}
        self._records_left: dict[int, int] = {}
        """Records that these still have to read."""
        self._committed_positions: dict[int, CommittedPosition] = {}
        """Where each partition began here, and where it stands since what was committed last."""
        self._encoders: dict[int, RecordEncoder] = {}
        self._kept_tasks: dict[int, tuple[CommittedPosition, Task, RecordEncoder]] = {}
        """Tasks of the partitions taken away last, as they were committed: they may come back."""
        self._advanced_while_idle: set[int] = set()
        """Partitions whose stream time has moved by itself since it was committed."""
        self._snapshot_times: dict[int, float] = {}
        self._busy = False
        self._gauges = gauges
        self._throttle = DeadLetterThrottle(config.worker.dead_letters)
        lag = config.join.idle_advance
        self._idle = None if lag is None else IdleAdvance(lag)
        self._progress = Progress()
        self._producer = transactional_producer(config, instance, LARGEST_DEAD_LETTER)
        self._consumer: Consumer = group_consumer(config)
        self.membership = Membership(config.kafka, self._consumer)
        self._group_metadata: object = None
        """The consumer's membership in the group, as it was when partitions were assigned last."""
        self._source = ConsumerSource(self._consumer, config)
        patience = config.worker.transaction_timeout / 1000
        self._transaction_writer = TransactionWriter(self._producer, self.topics, settings, patience)
        self._in_flight = InFlightCommit(self._producer)
        self._exchange = make_exchange(config, int(settings["partitions"]))

    def __enter__(self) -> Self:
        self._producer.init_transactions(TIMEOUT)
        self._consumer.subscribe(
            list(self.topics.inputs),
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_revoke,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._clear_partitions()
        self._gauges.clear()
        if self._exchange is not None:
            self._exchange.close()
        self._consumer.close()

    def run(self, stopping: Callable[[], bool]) -> None:
        """Work until told to stop; then write every model whole."""
        while not stopping():
            self._run_once()
        self._end_commit()
        rest = [
            PartitionCommit(task, Batch(), self._encoders[task.partition], True)
            for task in self._tasks.values()
            if self._outcomes_since_snapshot(task)
        ]
        if rest:
            self._begin_commit(rest)
        self._end_commit()
        _log.info("stopped", partitions=sorted(self._tasks))

    def _run_once(self) -> None:
        if not self._busy:
            self._end_commit()  # else what comes meanwhile waits for two transactions instead of one
        idle = not (self._busy or self._restoring)
        self._source.poll(POLL_TIMEOUT if idle else 0.0)
        self._restore()
        if self._exchange is not None:
            self._exchange.poll([task.inbox for task in self._tasks.values()])
        limit = self.config.worker.batch
        batches = {
            partition: task.advance(limit)
            for partition, task in self._tasks.items()
            if not self._throttle.is_throttled(partition)
        }
        if self._idle is not None:
            self._advanced_while_idle |= self._idle.punctuate(self._tasks, batches, limit, self._busy)
        self._busy = any(batch.steps == limit for batch in batches.values())
        parts = [
            PartitionCommit(
                self._tasks[partition], batch, self._encoders[partition], self._snapshot_due(partition)
            )
            for partition, batch in batches.items()
        ]
        parts = [part for part in parts if part.snapshot or not part.batch.empty]
        if parts:
            self._begin_commit(parts)
        elif self._in_flight.done:
            self._end_commit()
        self._source.apply_backpressure()
        self._gauges.update(self._tasks, self._source, self._throttle)
        self._progress.report(self._tasks.values(), self._records_left)

    def _restore(self) -> None:
        """Go on with restoring, for one slice of the log, so that the group hears from us in between."""
        for partition, steps in list(self._restoring.items()):
            try:
                step = next(steps)
            except StateError:
                if self._reassigned_meanwhile(partition):
                    return
                raise
            if not isinstance(step, Task):
                self._records_left[partition] = step
                return
            del self._restoring[partition]
            self._records_left.pop(partition, None)
            self._start_task(step)
            _log.info("restored", partition=partition, predictions=step.predicted, outcomes=step.model.folded)

    def _start_task(self, task: Task) -> None:
        """Work on a partition whose task is as it was committed."""
        self._tasks[task.partition] = task
        self._snapshot_times[task.partition] = time.monotonic()
        self._progress.begin(task)
        self._source.connect(task)

    def _reassigned_meanwhile(self, partition: int) -> bool:
        """Whether others went on with a partition while this worker restored it, and so it is taken away.

        A worker that slept meanwhile wakes with a start that is out of date, to which the log does not fit.
        The group has news for it, which may be that another worker has its name.
        """
        topic_partitions = [TopicPartition(topic, partition) for topic in self.topics.inputs]
        now = committed_position(
            committed(self._consumer, topic_partitions)[partition], self.topics, self._low_watermark
        )
        if now == self._committed_positions[partition]:
            return False
        end = time.monotonic() + heartbeat_interval(self.config.worker) / 1000 + HEARTBEAT_GRACE
        while partition in self._committed_positions:
            if time.monotonic() > end:
                raise KafkaException(
                    KafkaError(
                        KafkaError.ILLEGAL_GENERATION,
                        f"partition was reassigned while it was restored: {partition}",
                    )
                )
            self._source.poll(POLL_TIMEOUT)
        return True

    def _outcomes_since_snapshot(self, task: Task) -> int:
        return task.model.folded - (task.snapshot.folded if task.snapshot else 0)

    def _snapshot_due(self, partition: int) -> bool:
        unsaved = self._outcomes_since_snapshot(self._tasks[partition])
        age = time.monotonic() - self._snapshot_times[partition]
        settings = self.config.checkpoint
        return unsaved >= settings.outcomes or (unsaved > 0 and age * 1000 >= settings.interval)

    def _begin_commit(self, parts: list[PartitionCommit]) -> None:
        self._end_commit()
        self._in_flight.begin(lambda: self._transaction_writer.commit(parts, self._group_metadata))
        for part in parts:
            partition = part.task.partition
            self._advanced_while_idle.discard(partition)
            self._throttle.note(partition, len(part.batch.dead_letters))
            if part.snapshot:
                self._snapshot_times[partition] = time.monotonic()

    def _end_commit(self) -> None:
        """Wait for the transaction that is under way, if there is one."""
        for part, start in self._in_flight.end():
            self._committed_positions[part.task.partition] = start
            if part.snapshot:
                assert part.task.snapshot is not None
                _log.info("snapshot", partition=part.task.partition, outcomes=part.task.snapshot.folded)

    def _on_assign(self, consumer: Consumer, topic_partitions: list[TopicPartition]) -> None:
        """Start from the committed offsets, but read nothing before the state is restored."""
        self.membership.note()
        self._group_metadata = consumer.consumer_group_metadata()
        partitions = int(self._settings["partitions"])
        for topic_partition in topic_partitions:
            if topic_partition.partition >= partitions:
                raise StateError(
                    f"{topic_partition.topic} has more partitions than when this worker started: "
                    "keys are now in other "
                    "partitions than their state. Replay into new topics, with another kafka.prefix"
                )
        positions, kept_tasks = [], []
        by_partition = committed(consumer, topic_partitions)
        for partition, by_topic in by_partition.items():
            start = self._committed_positions[partition] = committed_position(
                by_topic, self.topics, self._low_watermark
            )
            offsets = zip(self.topics.inputs, start[:2], strict=True)
            positions += [TopicPartition(topic, partition, offset) for topic, offset in offsets]
            kept = self._kept_tasks.pop(partition, None)
            if kept is not None and kept[0] == start:
                _, task, self._encoders[partition] = kept
                kept_tasks.append(task)
                continue
            encoder = self._encoders[partition] = RecordEncoder()
            self._restoring[partition] = recover(
                partition,
                start,
                self._new_model,
                self._settings,
                self.config,
                keep_waiting=encoder.restore,
            )
        self._kept_tasks.clear()
        self._source.assign(positions)
        _log.info("assigned", partitions=list(by_partition))
        for task in kept_tasks:
            task.rewind()
            self._start_task(task)
            _log.info(
                "kept", partition=task.partition, predictions=task.predicted, outcomes=task.model.folded
            )

    def _low_watermark(self, topic_partition: TopicPartition) -> int:
        low, _ = self._consumer.get_watermark_offsets(topic_partition, TIMEOUT)
        return low

    def _on_revoke(self, consumer: Consumer, topic_partitions: list[TopicPartition]) -> None:  # noqa: ARG002 - the signature is librdkafka's
        """With the transaction under way all is committed: what is in memory can go, or be of use again."""
        self._end_commit()
        _log.info(
            "revoked", partitions=sorted({topic_partition.partition for topic_partition in topic_partitions})
        )
        kept = {
            partition: (self._committed_positions[partition], task, self._encoders[partition])
            for partition, task in self._tasks.items()
            if partition not in self._advanced_while_idle
        }
        self._clear_partitions()
        self._kept_tasks = kept

    def _clear_partitions(self) -> None:
        self._in_flight.abandon()
        if self._idle is not None:
            self._idle.clear()
        for steps in self._restoring.values():
            steps.close()
        self._source.clear()
        for held in (
            self._tasks,
            self._encoders,
            self._restoring,
            self._committed_positions,
            self._snapshot_times,
            self._records_left,
            self._kept_tasks,
            self._advanced_while_idle,
        ):
            held.clear()
        self._progress.clear()
