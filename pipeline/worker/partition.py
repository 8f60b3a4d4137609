"""One partition of the inputs, from its assignment to this worker until it is taken away."""

from __future__ import annotations

import secrets
import time
from collections.abc import Generator
from enum import Enum, auto
from typing import Protocol, TypeAlias

import structlog

from pipeline.config.settings import Config
from pipeline.join.spill import SpilledPredictions
from pipeline.kafka.committed import CommittedPosition
from pipeline.records.output_types import OutputTypes
from pipeline.recovery.restoration import WrittenTexts
from pipeline.task.batch import Batch
from pipeline.task.record_queue import RecordQueue
from pipeline.task.task import Task
from pipeline.worker.clock import IdleAdvance
from pipeline.worker.encoder import RecordEncoder
from pipeline.worker.late_partitions import LatePartitions
from pipeline.worker.spill_file import SpillFile
from pipeline.worker.throttle import DeadLetterThrottle
from pipeline.worker.transaction import PartitionCommit

Restoration: TypeAlias = Generator[Task | int]
"""Yields how many records are left to read, and at last the task: see `pipeline.recovery.restore.restore`."""


class Restore(Protocol):
    """Begins to restore a task."""

    def __call__(
        self,
        position: CommittedPosition,
        /,
        *,
        texts: WrittenTexts,
        spilled: SpilledPredictions,
    ) -> Restoration:
        """Restore from a committed position; see `pipeline.recovery.restore.restore`."""


_log = structlog.get_logger()


class PartitionState(Enum):
    """What a worker has of a partition."""

    CLOSED = auto()
    """Nothing: the partition belongs to another worker, or to none."""
    RESTORING = auto()
    """The partition is assigned, and its task is being read from the log."""
    RUNNING = auto()
    """The task processes messages."""
    KEPT = auto()
    """The partition was taken away. Its task is as it was committed last, and is used again if it comes back
    before anybody has advanced it."""


class Partition:
    """The life cycle of one partition: closed, restoring, running, kept.

    It owns the partition's task, encoder and spill file, the committed position, the time of the last
    snapshot, the throttle of dead letters and the idle time. The throttle lasts through all states, so a
    rebalance does not reset it.

    Parameters
    ----------
    number
        The partition's number.
    config
        The whole configuration.
    restore
        Begins to restore the task from a committed position.
    """

    def __init__(self, number: int, config: Config, restore: Restore) -> None:
        self.number = number
        self.state = PartitionState.CLOSED
        self.position: CommittedPosition | None = None
        """Where a restart would go on: what was committed last."""
        self.records_left = 0
        """Records that are still to be read while the task is restored."""
        self._types = OutputTypes.of(config.stream)
        self.encoder = RecordEncoder(self._types)
        """Encodes the task's batches, in their order; another one for each task."""
        self._spill_file = SpillFile(config.join.spill_folder)
        self.throttle = DeadLetterThrottle(number, config.worker.dead_letters)
        self.late_partitions = LatePartitions(number, config.sharing.max_wait)
        lag = config.join.idle_advance
        self._idle = None if lag is None else IdleAdvance(lag)
        self._advanced_while_idle = False
        """Whether stream time has moved without a message since the last commit."""
        self._checkpoint = config.checkpoint
        self._snapshot_time = 0.0
        self._restore = restore
        self._restoration: Restoration | None = None
        self._task: Task | None = None

    @property
    def running(self) -> bool:
        """Whether the task processes messages."""
        return self.state is PartitionState.RUNNING

    @property
    def restoring(self) -> bool:
        """Whether the task is being restored."""
        return self.state is PartitionState.RESTORING

    @property
    def task(self) -> Task:
        """The task of a partition that is running or kept."""
        assert self._task is not None, f"partition {self.number} is {self.state.name.lower()}"
        return self._task

    @property
    def queues(self) -> tuple[RecordQueue, RecordQueue]:
        """Where the messages of interactions and labels go."""
        return self.task.interactions, self.task.labels

    def assign(self, position: CommittedPosition) -> None:
        """Begin to restore the task, or go on with the one that was kept if it is at this position.

        Parameters
        ----------
        position
            What the group has committed for the partition.
        """
        if self.state is PartitionState.KEPT and self.position == position:
            self.task.rewind()
            self._run(self.task)
            return
        self.close()
        self.position = position
        self.encoder = RecordEncoder(self._types)
        spilled = SpilledPredictions(self._spill_file, self._types.predictions, secrets.token_bytes(16))
        self._restoration = self._restore(position, texts=self.encoder, spilled=spilled)
        self.state = PartitionState.RESTORING

    def restore(self) -> bool:
        """Restore the task, for one slice of the log.

        Returns
        -------
        bool
            Whether the task is complete, and so the partition is running.

        Raises
        ------
        StateError
            The log does not fit together, or not to the committed position.
        """
        assert self._restoration is not None, f"partition {self.number} is {self.state.name.lower()}"
        step = next(self._restoration)
        if not isinstance(step, Task):
            self.records_left = step
            return False
        self._restoration, self.records_left = None, 0
        step.join.pending.read_ids_from(self.encoder)
        self._run(step)
        return True

    def advance(self, limit: int, *, busy: bool) -> PartitionCommit | None:
        """Process messages, and let stream time pass while there are none.

        Parameters
        ----------
        limit
            The largest number of steps.
        busy
            Whether the worker has more to do at once.

        Returns
        -------
        PartitionCommit or None
            What is to be committed; None if there is nothing, or the partition is throttled.
        """
        if self.throttle.active:
            return None
        batch = self.task.advance(limit)
        self.late_partitions.check(self.task.inbox)
        if self._idle is not None:
            if not batch.empty or not all(queue.at_end for queue in self.queues):
                self._idle.reset()
            elif (stream_time := self._idle.stream_time(self.task.stream_time, busy=busy)) is not None:
                batch = self.task.punctuate(stream_time, limit)
                self._advanced_while_idle = True
        snapshot = self._snapshot_due()
        if batch.empty and not snapshot:
            return None
        return PartitionCommit(self.task, batch, self.encoder, snapshot)

    def last_commit(self) -> PartitionCommit | None:
        """Return the snapshot that makes the next restart short, None if the last one is still exact."""
        if not self.outcomes_since_snapshot:
            return None
        return PartitionCommit(self.task, Batch(), self.encoder, True)

    def begin_commit(self, commit: PartitionCommit) -> None:
        """Note that a transaction with this part has begun; its records are encoded."""
        self._advanced_while_idle = False
        self.throttle.note(len(commit.batch.dead_letters))
        if commit.snapshot:
            self._snapshot_time = time.monotonic()
        self.encoder.follow(commit.task.join)

    def end_commit(self, commit: PartitionCommit, position: CommittedPosition) -> None:
        """Note that a transaction with this part was committed.

        Parameters
        ----------
        commit
            The part.
        position
            Where a restart would go on now.
        """
        self.position = position
        if commit.snapshot:
            assert commit.task.snapshot is not None
            _log.info("snapshot", partition=self.number, outcomes=commit.task.snapshot.outcomes_learned)

    def revoke(self) -> None:
        """Keep the task of a running partition if it is as it was committed; else close the partition."""
        if self.running and not self._advanced_while_idle:
            self.state = PartitionState.KEPT
        else:
            self.close()

    def close(self) -> None:
        """Forget the task, and end its restoration if it is under way."""
        if self._restoration is not None:
            self._restoration.close()
        self._restoration = self._task = self.position = None
        self._spill_file.close()
        self.encoder = RecordEncoder(self._types)
        self.records_left, self._advanced_while_idle = 0, False
        self.state = PartitionState.CLOSED

    def _run(self, task: Task) -> None:
        self._task = task
        self._snapshot_time = time.monotonic()
        if self._idle is not None:
            self._idle.reset()
        self.state = PartitionState.RUNNING

    @property
    def outcomes_since_snapshot(self) -> int:
        """Number of outcomes learned since the last snapshot."""
        snapshot = self.task.snapshot
        return self.task.model.outcomes_learned - (snapshot.outcomes_learned if snapshot else 0)

    @property
    def snapshot_age(self) -> float:
        """Time since the last snapshot was written, or the task restored, in seconds."""
        return time.monotonic() - self._snapshot_time

    def _snapshot_due(self) -> bool:
        unsaved = self.outcomes_since_snapshot
        return unsaved >= self._checkpoint.outcomes or (
            unsaved > 0 and self.snapshot_age * 1000 >= self._checkpoint.interval
        )
