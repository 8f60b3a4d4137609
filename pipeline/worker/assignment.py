"""The partitions that the group has assigned to a worker: how they come, are restored, and go."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import structlog
from confluent_kafka import Consumer, TopicPartition

from pipeline.config.settings import Config
from pipeline.config.topics import topics_of
from pipeline.errors import StateError
from pipeline.kafka.committed import committed_positions
from pipeline.kafka.offsets import PartitionId
from pipeline.model.model import Model
from pipeline.monitoring.monitor import Monitor
from pipeline.records.schemas import SchemaUnavailableError
from pipeline.recovery.restore import restore
from pipeline.worker.membership import Membership
from pipeline.worker.partition import Partition
from pipeline.worker.progress import Progress
from pipeline.worker.source import ConsumerSource
from pipeline.worker.table_source import TableSource

POLL_TIMEOUT = 0.1
"""Seconds to wait for a message, or for news of the group."""
SCHEMA_PAUSE = 1.0
"""Seconds between two attempts to restore a partition whose log needs a schema that is not known yet."""

_log = structlog.get_logger()


class Assignment:
    """Follows what the group assigns and takes away, and restores partitions between two polls.

    Parameters
    ----------
    config
        The whole configuration.
    consumer
        A consumer of the group.
    new_model
        Makes a model that has seen nothing.
    settings
        What the outputs depend on.
    monitor
        Is told what is assigned, restored and running.
    """

    def __init__(
        self,
        config: Config,
        consumer: Consumer,
        new_model: Callable[[], Model],
        settings: dict[str, str],
        monitor: Monitor,
    ) -> None:
        self.partitions: dict[int, Partition] = {}
        """All partitions that the worker has had, by number."""
        self.membership = Membership(config.kafka, config.worker, consumer)
        self.source = ConsumerSource(consumer, config)
        self.tables = TableSource(config)
        self.progress = Progress()
        self._config = config
        self._monitor = monitor
        self._consumer = consumer
        self._topics = topics_of(config)
        self._count = int(settings["partitions"])
        self._recover = partial(
            restore,
            new_model=new_model,
            settings=settings,
            config=config,
            labels=self.source.decoders.labels,
            schemas=self.source.lookup,
        )
        self._closed = False
        self._waits_until: dict[int, float] = {}
        """When a partition is restored again whose log has a message of a schema that is not known yet."""

    @property
    def running(self) -> list[Partition]:
        """The partitions whose tasks process messages."""
        return [partition for partition in self.partitions.values() if partition.running]

    @property
    def restoring(self) -> list[Partition]:
        """The partitions whose tasks are being restored, but those that wait for a schema."""
        now = time.monotonic()
        return [
            partition
            for partition in self.partitions.values()
            if partition.restoring and self._waits_until.get(partition.number, 0.0) <= now
        ]

    def subscribe(self, before_revocation: Callable[[], None]) -> None:
        """Join the group; partitions come and go during later polls.

        Parameters
        ----------
        before_revocation
            Called while the partitions that go are still this worker's.
        """

        def on_assign(_: Consumer, topic_partitions: list[TopicPartition]) -> None:
            if not self._closed:  # the consumer calls this also while it is closed
                self._assign(topic_partitions)

        def on_revoke(_: Consumer, topic_partitions: list[TopicPartition]) -> None:
            before_revocation()
            numbers = {topic_partition.partition for topic_partition in topic_partitions}
            _log.info("revoked", partitions=sorted(numbers))
            self._drop(Partition.revoke)
            self._monitor.revoked()

        callbacks = {"on_assign": on_assign, "on_revoke": on_revoke, "on_lost": on_revoke}
        self._consumer.subscribe(list(self._topics.inputs), **callbacks)

    def restore(self, seconds: float) -> None:
        """Restore some slices of the log, and then return, so that the group hears from this worker.

        Parameters
        ----------
        seconds
            When so much time is over, no other slice is begun.

        Raises
        ------
        KafkaException
            The log cannot be read, or another worker has advanced a partition meanwhile.
        StateError
            The log does not fit together.
        """
        end = time.monotonic() + seconds
        for partition in self.restoring:
            try:
                while not partition.restore():
                    if time.monotonic() >= end:
                        return
            except SchemaUnavailableError:
                assert partition.position is not None
                partition.assign(partition.position)
                self._waits_until[partition.number] = time.monotonic() + SCHEMA_PAUSE
                continue
            except StateError:
                if self._advanced_by_others(partition):
                    return
                raise
            self._start(partition, "restored")

    def close(self) -> None:
        """Forget all partitions, and take no others."""
        self._closed = True
        self._drop(Partition.close)

    def _assign(self, topic_partitions: list[TopicPartition]) -> None:
        """Start from the committed offsets, but read nothing before the state is restored."""
        self._monitor.assigned(sorted({each.partition for each in topic_partitions}))
        self.membership.note_assignment()
        for topic_partition in topic_partitions:
            if topic_partition.partition >= self._count:
                raise StateError(
                    f"{topic_partition.topic} has more partitions than when this worker started: "
                    "keys are now in other partitions than their state. Nothing is lost: what is in the new "
                    "ones stays there unread. Replay into new topics, with another kafka.prefix"
                )
        numbers = {topic_partition.partition for topic_partition in topic_partitions}
        positions = committed_positions(self._consumer, self._topics, sorted(numbers))
        for number, position in positions.items():
            if number not in self.partitions:
                self.partitions[number] = Partition(number, self._config, partial(self._recover, number))
            self.partitions[number].assign(position)
        for number in self.partitions.keys() - numbers:
            self.partitions[number].close()
        self.source.assign(
            {
                PartitionId(topic, number): offset
                for number, position in positions.items()
                for topic, offset in zip(self._topics.inputs, position[:2], strict=True)
            }
        )
        _log.info("assigned", partitions=list(positions))
        for partition in self.running:
            self._start(partition, "kept")

    def _start(self, partition: Partition, event: str) -> None:
        """Read into the task of a partition that has just become running."""
        task = partition.task
        self.progress.begin(task)
        self._monitor.running(task, restored=event == "restored")
        self.source.connect(partition.number, partition.queues)
        self.tables.connect(partition.number, task.tables)
        _log.info(
            event,
            partition=partition.number,
            predictions=task.predicted,
            outcomes=task.model.outcomes_learned,
        )

    def _drop(self, drop: Callable[[Partition], None]) -> None:
        for partition in self.partitions.values():
            drop(partition)
        self.source.clear()
        self.tables.clear()
        self.progress.clear()

    def _advanced_by_others(self, partition: Partition) -> bool:
        """Return whether another worker advanced a partition while it was restored; await its revocation.

        A worker that was suspended meanwhile restores from a position that is out of date, to which the log
        does not fit. The group takes the partition away then, or another worker has this one's name.
        """
        number = partition.number
        if committed_positions(self._consumer, self._topics, [number])[number] == partition.position:
            return False
        self.membership.await_revocation(partition, partial(self.source.poll, POLL_TIMEOUT))
        return True
