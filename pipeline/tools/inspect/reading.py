"""Read the committed messages of a topic from a start position on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.errors import ConfigError
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.output_values import OutputValues
from pipeline.kafka.types import ConsumerRecord
from pipeline.log.live import follow as follow_partitions
from pipeline.log.partition_log import PartitionLog
from pipeline.log.ranges import Watermarks
from pipeline.log.reader import LogReader
from pipeline.tools.inspect.start import At, Last, Since, StartPosition


def read(
    kafka: Kafka,
    topics: Topics,
    topic: str,
    start: StartPosition,
    partition: int | None = None,
    *,
    follow: bool = False,
) -> Iterator[ConsumerRecord]:
    """Yield messages: one partition after the other, or the last ones of all partitions by their time.

    Parameters
    ----------
    kafka
        Connection of the topic.
    topics
        Topics of the pipeline.
    topic
        Name of the topic.
    start
        Position to start from.
    partition
        Number of the only partition to read; None for all.
    follow
        Whether to go on with new messages of all partitions after the end, without an end.

    Yields
    ------
    ConsumerRecord
        Committed messages.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        The topic does not exist.
    ConfigError
        The partition does not exist.
    """
    ranges = _ranges(Watermarks(kafka, [topic]), topic, start, partition)
    ends = {each: offsets.stop for each, offsets in ranges.items()}
    values = OutputValues(topics)
    with LogReader(kafka, values=values) as reader:
        logs = [(PartitionLog(reader, topics, each.partition), offsets) for each, offsets in ranges.items()]
        messages = _last(logs, topic, start.number) if isinstance(start, Last) else _all(logs, topic)
        for message in messages:
            ends[PartitionId(topic, message.partition() or 0)] = (message.offset() or 0) + 1
            if _is_recent(message, start):
                yield message
    if follow:
        new = (message for message in follow_partitions(kafka, ends) if _is_recent(message, start))
        for message in new:
            yield from values.converted(topic, [message])


def _ranges(
    watermarks: Watermarks, topic: str, start: StartPosition, partition: int | None
) -> dict[PartitionId, range]:
    """Return the offsets to read, by partition."""
    partitions = [each for each in watermarks.partitions if partition in (None, each.partition)]
    if not partitions:
        raise ConfigError(
            f"--partition {partition}: {topic} has partitions 0 to {len(watermarks.partitions) - 1}"
        )
    ranges = watermarks.ranges()
    if isinstance(start, Since):
        begins = watermarks.offsets_for_times(start.timestamp)
    else:
        begins = dict.fromkeys(partitions, start.offset if isinstance(start, At) else 0)
    return {each: _from(ranges[each], begins[each]) for each in partitions}


def _from(offsets: range, begin: int | None) -> range:
    """Return the offsets from one on; none if it is None or behind the end."""
    if begin is None or begin > offsets.stop:
        return range(offsets.stop, offsets.stop)
    return range(max(begin, offsets.start), offsets.stop)


def _all(logs: Sequence[tuple[PartitionLog, range]], topic: str) -> Iterator[ConsumerRecord]:
    for log, offsets in logs:
        if offsets:
            yield from log.messages(topic, offsets.start)


def _last(logs: Sequence[tuple[PartitionLog, range]], topic: str, count: int) -> list[ConsumerRecord]:
    """Return the last messages of all partitions by time, those of one partition in the order of offsets."""
    timed = []
    for log, offsets in logs:
        messages = log.last(topic, offsets, count)
        times = accumulate((message.timestamp()[1] for message in messages), max)
        timed += list(zip(times, messages, strict=True))
    timed.sort(key=lambda pair: pair[0])
    return [message for _, message in timed[max(0, len(timed) - count) :]]


def _is_recent(message: ConsumerRecord, start: StartPosition) -> bool:
    """Return whether a message is not older than the start time, as one behind the first of them may be."""
    return not isinstance(start, Since) or message.timestamp()[1] >= start.timestamp
