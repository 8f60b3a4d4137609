"""The loop of a worker between two faults: poll, process, commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Self

import structlog
from confluent_kafka import Consumer

from pipeline.config.settings import Config
from pipeline.config.topics import LARGEST_DEAD_LETTER, topics_of
from pipeline.kafka.access.errors import COORDINATOR_TIMEOUT
from pipeline.kafka.clients import group_consumer, transactional_producer
from pipeline.kafka.deadline import BackgroundCall, close_consumer
from pipeline.kafka.output_values import Encoders
from pipeline.kafka.topics import DEFAULT_LIMITS, OutputLimits
from pipeline.model.model import Model
from pipeline.monitoring.monitor import Monitor
from pipeline.recovery.signature import state_signer
from pipeline.worker.assignment import POLL_TIMEOUT, Assignment
from pipeline.worker.clock import wall_clock
from pipeline.worker.membership import Membership
from pipeline.worker.metrics import metrics_of, registry_metrics
from pipeline.worker.partition import Partition
from pipeline.worker.share_reader import make_exchange
from pipeline.worker.transaction import InFlightCommit, PartitionCommit, TransactionWriter

SHARES_TIMEOUT = 0.01
"""Seconds to wait for a share, where a partition has nothing else to do."""
MAX_RESTORE_SECONDS = 1.0
"""Seconds for which a worker restores between two polls, at most, beside one slice of the log."""

_log = structlog.get_logger()


class Session:
    """Polls, advances and commits until told to stop, or until something fails.

    Use as a context manager. After an error throw the session away and start another.

    Parameters
    ----------
    config
        The whole configuration.
    instance
        The worker's name, by which older workers of that name are fenced.
    new_model
        Makes a model that has seen nothing.
    monitor
        Is told what the session does.
    settings
        What the outputs depend on.
    limits
        How large records may be.
    encoders
        Of the topics whose records are not plain JSON.

    Raises
    ------
    KafkaException
        From any method: a broker, the group or a transaction failed.
    StateError
        From any method: what the topics hold does not fit together.
    """

    def __init__(
        self,
        config: Config,
        instance: str,
        new_model: Callable[[], Model],
        monitor: Monitor,
        settings: dict[str, str],
        *,
        limits: OutputLimits = DEFAULT_LIMITS,
        encoders: Encoders = MappingProxyType({}),
    ) -> None:
        self._batch_size = config.worker.batch
        self._busy = False
        """Whether the last batches left something to do."""
        self._restore_seconds = 0.0
        """How long partitions are restored in the next step: as long as the others took in the last one."""
        self._monitor = monitor
        statistics = monitor.statistics_of("producer")
        self._producer = transactional_producer(
            config.kafka, config.worker, instance, LARGEST_DEAD_LETTER, statistics, batch_bytes=limits.batch
        )
        self.consumer: Consumer = group_consumer(
            config.kafka, config.worker, monitor.statistics_of("consumer")
        )
        self.assignment = Assignment(config, self.consumer, new_model, settings, monitor)
        timeout = config.worker.transaction_timeout / 1000
        self.writer = TransactionWriter(
            self._producer,
            topics_of(config),
            settings,
            timeout,
            state_signer(config.checkpoint, config.kafka),
            encoders=encoders,
            room=limits.dead_letter,
        )
        self.in_flight = InFlightCommit(self._producer)
        self._exchange = make_exchange(
            config.kafka, config.sharing, topics_of(config), int(settings["partitions"])
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._monitor.session_ended()
        self.in_flight.abandon()
        self.assignment.close()
        if self._exchange is not None:
            self._exchange.close()
        close_consumer(self.consumer)

    def start(self, stopping: Callable[[], bool] = lambda: False) -> None:
        """Fence older workers of this name and join the group, unless told to stop meanwhile."""

        def poll() -> bool:
            self._monitor.beat()
            self._producer.poll(0)  # logs what the client reports, such as a refused password
            return stopping()

        call = BackgroundCall(lambda: self._producer.init_transactions(COORDINATOR_TIMEOUT))
        call.result(COORDINATOR_TIMEOUT, poll)
        self._monitor.session_begun()
        self.subscribe()

    @property
    def partitions(self) -> Mapping[int, Partition]:
        """All partitions that the worker has had, by number."""
        return self.assignment.partitions

    @property
    def membership(self) -> Membership:
        """The worker's membership in the group."""
        return self.assignment.membership

    def subscribe(self) -> None:
        """Join the group, which assigns partitions during later polls."""
        self.assignment.subscribe(before_revocation=self._end_commit)

    def run(self, stopping: Callable[[], bool]) -> None:
        """Work until told to stop; then write a snapshot of every model."""
        while not stopping():
            self.step()
        running = self.assignment.running
        self._begin_commit([commit for each in running if (commit := each.last_commit())])
        self._end_commit()
        _log.info("stopped", partitions=sorted(partition.number for partition in running))

    def step(self) -> None:
        """Poll once, process a batch of each partition, and begin to commit what came of it."""
        stage = self._monitor.stage
        if not self._busy:
            self._end_commit()  # else the messages that arrive meanwhile wait for two transactions, not one
        source = self.assignment.source
        waiting = any(partition.late_partitions.waiting for partition in self.assignment.running)
        with stage("poll"):
            source.poll(0.0 if self._busy or waiting or self.assignment.restoring else POLL_TIMEOUT)
        with stage("tables"):
            self.assignment.tables.poll()
        with stage("restore"):
            self.assignment.restore(self._restore_seconds)
        begin = time.monotonic()
        running = self.assignment.running
        if self._exchange is not None:
            timeout = SHARES_TIMEOUT if waiting and not self._busy else 0.0
            with stage("shares"):
                self._exchange.poll([partition.task.inbox for partition in running], timeout)
        limit = self._batch_size
        with stage("process"):
            commits = [commit for each in running if (commit := each.advance(limit, busy=self._busy))]
            self._monitor.processed([(commit.task, commit.batch) for commit in commits])
        self._busy = any(commit.batch.steps == limit for commit in commits)
        if commits:
            self._begin_commit(commits)
        elif self.in_flight.done:
            self._end_commit()
        source.apply_backpressure()
        self._report(running)
        self._restore_seconds = min(time.monotonic() - begin, MAX_RESTORE_SECONDS)

    def _report(self, running: Sequence[Partition]) -> None:
        """Say how far the partitions are: to the monitor, and from time to time in the log."""
        partitions, source = self.partitions.values(), self.assignment.source
        if not self.in_flight.under_way:
            self._producer.poll(0)  # takes its statistics, which would pile up; a commit's flush does so, too
        self._monitor.restoring({each.number: each.records_left for each in partitions if each.restoring})
        self._monitor.update(
            {each.number: each.state.name.lower() for each in partitions},
            metrics_of(running, source),
            partial(registry_metrics, source),
        )
        self._monitor.beat()
        self.assignment.progress.report(partitions)

    def _begin_commit(self, commits: Sequence[PartitionCommit]) -> None:
        self._end_commit()
        if not commits:
            return
        self._monitor.committing([commit.task for commit in commits])
        with self._monitor.stage("write"):
            self.in_flight.begin(lambda: self.writer.commit(commits, self.membership.metadata))
        for commit in commits:
            self.partitions[commit.task.partition].begin_commit(commit)

    def _end_commit(self) -> None:
        """Wait for the transaction that is under way, if there is one."""
        begin = time.monotonic()
        ended = self.in_flight.end()
        if not ended:
            return
        now = wall_clock()
        self._monitor.committed(self.in_flight.seconds, time.monotonic() - begin)
        for commit, position in ended:
            number = commit.task.partition
            self.partitions[number].end_commit(commit, position)
            size = self.writer.snapshot_sizes.get(number) if commit.snapshot else None
            cut = self.writer.cut.get(number, 0)
            self._monitor.count(commit.task, commit.batch, now, snapshot_size=size, cut=cut)
