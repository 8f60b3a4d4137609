"""How fast a group gets through logs that are there, seen from what it has committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, Final, NamedTuple, Self

import psutil
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.kafka.access.new_client import LIBRDKAFKA_LOGGER, client_settings

POLL_INTERVAL: Final = 0.05
"""Seconds between two looks at what is committed: each takes processors from those looked at."""
REQUEST_TIMEOUT: Final = 30.0
"""Seconds that the broker may take to tell."""
COORDINATOR_NOT_READY: Final = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}
"""What a broker says that has not had a group yet: nothing is committed there."""
STALL_TIMEOUT: Final = 120.0
"""Seconds without progress after which something is wrong."""


class Sample(NamedTuple):
    """What can be seen at one moment."""

    time: float
    """Seconds on a clock."""
    messages: int
    """Input messages that are processed and committed."""
    workers: float
    """Seconds of the processors that the processes have used which consume and produce."""
    broker: float
    """The same of the broker."""


class Throughput(NamedTuple):
    """What came about between the first commit and the last one."""

    events_per_s: float
    seconds: float
    cpu_us: float
    """Microseconds of the processor an event, of the processes that consume and produce."""
    broker_cpu_us: float
    """The same of the broker, which serves nobody else meanwhile."""

    @classmethod
    def between(cls, first: Sample, last: Sample) -> Self:
        """Return what came about between two moments, the later one with more messages."""
        events, seconds = (last.messages - first.messages) / 2, last.time - first.time
        return cls(
            events_per_s=events / seconds,
            seconds=seconds,
            cpu_us=1e6 * (last.workers - first.workers) / events,
            broker_cpu_us=1e6 * (last.broker - first.broker) / events,
        )

    @classmethod
    def median(cls, throughputs: Sequence[Self]) -> Self:
        """Return the median of each figure."""
        return cls(*map(median, zip(*throughputs, strict=True)))

    def figures(self) -> dict[str, float]:
        """Return it for JSON."""
        return {name: round(value, 2) for name, value in self._asdict().items()}


class CommittedOffsets:
    """How many input messages a group has processed, by the offsets that it has committed.

    Parameters
    ----------
    kafka : where, and the prefix of the inputs
    group : whose offsets
    partitions : of each input
    """

    def __init__(self, kafka: Kafka, group: str, partitions: int = 1) -> None:
        # Never a member of the group. The admin client's question for offsets ends the process in librdkafka
        # 2.16 where the broker has not had a group yet.
        self._consumer = Consumer(
            client_settings(kafka) | {"group.id": group, "isolation.level": "read_uncommitted"},
            logger=LIBRDKAFKA_LOGGER,
        )
        self._partitions = [
            TopicPartition(topic, number)
            for topic in Topics(kafka.prefix).inputs
            for number in range(partitions)
        ]

    def messages(self) -> int:
        """Return how many there are now; those of a transaction only once it is committed."""
        try:
            offsets = self._consumer.committed(self._partitions, REQUEST_TIMEOUT)
        except KafkaException as error:
            if error.args[0].code() in COORDINATOR_NOT_READY:
                return 0
            raise
        return sum(max(offset.offset, 0) for offset in offsets)


def measure_throughput(
    committed: CommittedOffsets,
    events: int,
    workers: list[psutil.Process],
    broker: psutil.Process,
    progress: Callable[[int], Any] = lambda _: None,
    *,
    warm_up: int = 0,
) -> Throughput:
    """Follow a group from its first commit to the one with which all is done.

    What is committed first is not counted: it includes the start, and the group may have read ahead.

    Parameters
    ----------
    committed
        The group's, nothing yet.
    events
        In the logs, each an interaction and a label.
    workers
        The processes whose seconds are counted as the worker's.
    broker
        The broker's.
    progress
        Told how many events' messages are done, again and again.
    warm_up
        Events of those in the logs that come first and are not counted.

    Raises
    ------
    SystemExit
        A worker has ended, or there is no progress.
    """

    def sample() -> Sample:
        messages = committed.messages()
        return Sample(time.perf_counter(), messages, sum(map(_seconds, workers)), _seconds(broker))

    first = last = sample()
    while last.messages < 2 * events:
        time.sleep(POLL_INTERVAL)
        now = sample()
        if now.messages > last.messages:
            if first.messages <= 2 * warm_up:
                first = now
            last = now
            progress(last.messages // 2)
        elif now.time - last.time > STALL_TIMEOUT:
            raise SystemExit(
                f"no progress for {STALL_TIMEOUT:.0f} s at {last.messages} of {2 * events} messages"
            )
        for worker in workers:
            if worker.status() == psutil.STATUS_ZOMBIE:
                raise SystemExit(f"the worker ended at {last.messages} of {2 * events} messages")
    return Throughput.between(first, last)


def _seconds(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return spent.user + spent.system
