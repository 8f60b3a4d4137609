"""What a worker holds between two faults: clients, tasks, and the loop over them."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Self

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from pipeline.config.tree import Config
from pipeline.errors import StateError
from pipeline.kafka.clients import group_consumer, heartbeat, transactional_producer
from pipeline.kafka.committed import TIMEOUT, Start, committed, start_from
from pipeline.kafka.topics import LARGEST_DEAD_LETTER, topics_of
from pipeline.model.model import Model
from pipeline.recovery.restore import recover
from pipeline.task.batch import Batch
from pipeline.task.task import Task
from pipeline.worker.clock import IdleTime
from pipeline.worker.membership import Membership
from pipeline.worker.metrics import Gauges
from pipeline.worker.progress import Progress
from pipeline.worker.share_reader import exchange_of
from pipeline.worker.source import Intake
from pipeline.worker.throttle import Storms
from pipeline.worker.transaction import Commits, Part, Writer

POLL = 0.1
"""Seconds to wait for a first message."""
NEWS = 5.0
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
        self._left: dict[int, int] = {}
        """Records that these still have to read."""
        self._starts: dict[int, Start] = {}
        """Where each partition began here, and where it stands since what was committed last."""
        self._kept: dict[int, tuple[Start, Task]] = {}
        """Tasks of the partitions taken away last, as they were committed: they may come back."""
        self._moved: set[int] = set()
        """Partitions whose stream time has moved by itself since it was committed."""
        self._snapshot_times: dict[int, float] = {}
        self._busy = False
        self._gauges = gauges
        self._storms = Storms(config.worker.dead_letters)
        distance = config.join.idle_advance
        self._idle = None if distance is None else IdleTime(distance)
        self._progress = Progress()
        self._producer = transactional_producer(config, instance, LARGEST_DEAD_LETTER)
        self._consumer: Consumer = group_consumer(config)
        self.membership = Membership(config.kafka, self._consumer)
        self._generation: object = None
        """The consumer's membership in the group, as it was when partitions were assigned last."""
        self._intake = Intake(self._consumer, config)
        patience = config.worker.transaction_timeout / 1000
        self._writer = Writer(self._producer, self.topics, settings, patience)
        self._commits = Commits(self._producer)
        self._exchange = exchange_of(config, int(settings["partitions"]))

    def __enter__(self) -> Self:
        self._producer.init_transactions(TIMEOUT)
        self._consumer.subscribe(
            list(self.topics.inputs), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._forget_all()
        self._gauges.clear()
        if self._exchange is not None:
            self._exchange.close()
        self._consumer.close()

    def run(self, stopping: Callable[[], bool]) -> None:
        """Work until told to stop; then write every model whole."""
        while not stopping():
            self._step()
        self._end_commit()
        rest = [Part(task, Batch(), True) for task in self._tasks.values() if self._unsaved(task)]
        if rest:
            self._begin_commit(rest)
        self._end_commit()
        _log.info("stopped", partitions=sorted(self._tasks))

    def _step(self) -> None:
        if not self._busy:
            self._end_commit()  # else what comes meanwhile waits for two transactions instead of one
        idle = not (self._busy or self._restoring)
        self._intake.receive(POLL if idle else 0.0)
        self._restore()
        if self._exchange is not None:
            self._exchange.receive([task.reception for task in self._tasks.values()])
        limit = self.config.worker.batch
        batches = {
            partition: task.advance(limit)
            for partition, task in self._tasks.items()
            if not self._storms.holds(partition)
        }
        if self._idle is not None:
            self._moved |= self._idle.tick(self._tasks, batches, limit, self._busy)
        self._busy = any(batch.steps == limit for batch in batches.values())
        parts = [
            Part(self._tasks[partition], batch, self._snapshot_due(partition))
            for partition, batch in batches.items()
        ]
        parts = [part for part in parts if part.snapshot or not part.batch.empty]
        if parts:
            self._begin_commit(parts)
        elif self._commits.over:
            self._end_commit()
        self._intake.throttle()
        self._gauges.show(self._tasks, self._intake, self._storms)
        self._progress.report(self._tasks.values(), self._left)

    def _restore(self) -> None:
        """Go on with restoring, for one slice of the log, so that the group hears from us in between."""
        for partition, steps in list(self._restoring.items()):
            try:
                step = next(steps)
            except StateError:
                if self._overtaken(partition):
                    return
                raise
            if not isinstance(step, Task):
                self._left[partition] = step
                return
            del self._restoring[partition]
            self._left.pop(partition, None)
            self._begin(step)
            _log.info("restored", partition=partition, predictions=step.predicted, outcomes=step.model.folded)

    def _begin(self, task: Task) -> None:
        """Work on a partition whose task is as it was committed."""
        self._tasks[task.partition] = task
        self._snapshot_times[task.partition] = time.monotonic()
        self._progress.begin(task)
        self._intake.connect(task)

    def _overtaken(self, partition: int) -> bool:
        """Whether others went on with a partition while this worker restored it, and so it is taken away.

        A worker that slept meanwhile wakes with a start that is out of date, to which the log does not fit.
        The group has news for it, which may be that another worker has its name.
        """
        places = [TopicPartition(topic, partition) for topic in self.topics.inputs]
        now = start_from(committed(self._consumer, places)[partition], self.topics, self._beginning)
        if now == self._starts[partition]:
            return False
        end = time.monotonic() + heartbeat(self.config.worker) / 1000 + NEWS
        while partition in self._starts:
            if time.monotonic() > end:
                raise KafkaException(
                    KafkaError(KafkaError.ILLEGAL_GENERATION, f"others went on with partition {partition}")
                )
            self._intake.receive(POLL)
        return True

    def _unsaved(self, task: Task) -> int:
        return task.model.folded - (task.snapshot.folded if task.snapshot else 0)

    def _snapshot_due(self, partition: int) -> bool:
        unsaved = self._unsaved(self._tasks[partition])
        age = time.monotonic() - self._snapshot_times[partition]
        settings = self.config.checkpoint
        return unsaved >= settings.outcomes or (unsaved > 0 and age * 1000 >= settings.interval)

    def _begin_commit(self, parts: list[Part]) -> None:
        self._end_commit()
        self._commits.begin(lambda: self._writer.commit(parts, self._generation))
        for part in parts:
            partition = part.task.partition
            self._moved.discard(partition)
            self._storms.note(partition, len(part.batch.dead_letters))
            if part.snapshot:
                self._snapshot_times[partition] = time.monotonic()

    def _end_commit(self) -> None:
        """Wait for the transaction that is under way, if there is one."""
        for part, start in self._commits.end():
            self._starts[part.task.partition] = start
            if part.snapshot:
                assert part.task.snapshot is not None
                _log.info("snapshot", partition=part.task.partition, outcomes=part.task.snapshot.folded)

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        """Start from the committed offsets, but read nothing before the state is restored."""
        self.membership.note()
        self._generation = consumer.consumer_group_metadata()
        partitions = int(self._settings["partitions"])
        for place in places:
            if place.partition >= partitions:
                raise StateError(
                    f"{place.topic} has more partitions than when this worker started: keys are now in other "
                    "partitions than their state. Replay into new topics, with another kafka.prefix"
                )
        starts, back = [], []
        by_partition = committed(consumer, places)
        for partition, by_topic in by_partition.items():
            start = self._starts[partition] = start_from(by_topic, self.topics, self._beginning)
            offsets = zip(self.topics.inputs, start[:2], strict=True)
            starts += [TopicPartition(topic, partition, offset) for topic, offset in offsets]
            kept_start, task = self._kept.pop(partition, (None, None))
            if task is not None and kept_start == start:
                back.append(task)
                continue
            self._restoring[partition] = recover(
                partition, start, self._new_model, self._settings, self.config
            )
        self._kept.clear()
        self._intake.assign(starts)
        _log.info("assigned", partitions=list(by_partition))
        for task in back:
            task.rewind()
            self._begin(task)
            _log.info(
                "kept", partition=task.partition, predictions=task.predicted, outcomes=task.model.folded
            )

    def _beginning(self, place: TopicPartition) -> int:
        low, _ = self._consumer.get_watermark_offsets(place, TIMEOUT)
        return low

    def _revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:  # noqa: ARG002 - the signature is librdkafka's
        """With the transaction under way all is committed: what is in memory can go, or be of use again."""
        self._end_commit()
        _log.info("revoked", partitions=sorted({place.partition for place in places}))
        kept = {
            partition: (self._starts[partition], task)
            for partition, task in self._tasks.items()
            if partition not in self._moved
        }
        self._forget_all()
        self._kept = kept

    def _forget_all(self) -> None:
        self._commits.forget()
        if self._idle is not None:
            self._idle.clear()
        for steps in self._restoring.values():
            steps.close()
        self._intake.clear()
        for held in (
            self._tasks,
            self._restoring,
            self._starts,
            self._snapshot_times,
            self._left,
            self._kept,
            self._moved,
        ):
            held.clear()
        self._progress.clear()
