"""Committed messages of a topic, from where one wants them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from pipeline.config.tree import Kafka
from pipeline.errors import ConfigError
from pipeline.kafka.clients import reader
from pipeline.kafka.log import Log
from pipeline.kafka.offsets import Place
from pipeline.kafka.watermarks import Extents, last
from pipeline.tools.inspect.start import At, Last, Since, Start

POLL = 0.2
"""Seconds to wait for a message before looking whether Ctrl-C was pressed."""


class _Stretch(NamedTuple):
    """What is to be read of a partition."""

    place: Place
    offsets: range


def read(
    kafka: Kafka, topic: str, start: Start, partition: int | None = None, *, follow: bool = False
) -> Iterator[Message]:
    """Read messages: one partition after the other, or the last ones of all by their time.

    Parameters
    ----------
    kafka
        Where the topic is.
    topic
        Its name.
    start
        From where on.
    partition
        Only this one.
    follow
        Whether to wait for more when the end is reached, for ever, and of all partitions together.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        There is no such topic.
    ConfigError
        There is no such partition.
    """
    stretches = _stretches(Extents(kafka, [topic]), topic, start, partition)
    ends = {stretch.place: stretch.offsets.stop for stretch in stretches}
    with Log(kafka) as log:
        messages = _last(log, stretches, start.number) if isinstance(start, Last) else _all(log, stretches)
        for message in messages:
            ends[_place(message)] = (message.offset() or 0) + 1
            if _wanted(message, start):
                yield message
    if follow:
        yield from (message for message in _follow(kafka, ends) if _wanted(message, start))


def _stretches(extents: Extents, topic: str, start: Start, partition: int | None) -> list[_Stretch]:
    places = [place for place in extents.places if partition in (None, place.partition)]
    if not places:
        raise ConfigError(f"--partition {partition}: {topic} has partitions 0 to {len(extents.places) - 1}")
    ranges = extents.ranges()
    if isinstance(start, Since):
        begins = extents.not_before(start.timestamp)
    else:
        begins = dict.fromkeys(places, start.offset if isinstance(start, At) else 0)
    return [_Stretch(place, _from(ranges[place], begins[place])) for place in places]


def _from(offsets: range, begin: int | None) -> range:
    """The offsets from one on; none if that is None or behind the end."""
    if begin is None or begin > offsets.stop:
        return range(offsets.stop, offsets.stop)
    return range(max(begin, offsets.start), offsets.stop)


def _all(log: Log, stretches: list[_Stretch]) -> Iterator[Message]:
    for place, offsets in stretches:
        if offsets:
            yield from log.read_to_end(*place, offsets.start)


def _last(log: Log, stretches: list[_Stretch], count: int) -> list[Message]:
    """The last messages of all partitions, by time, each partition's in the order of their offsets."""
    timed = []
    for place, offsets in stretches:
        messages = last(log, place, offsets, count)
        times = accumulate((message.timestamp()[1] for message in messages), max)
        timed += list(zip(times, messages, strict=True))
    timed.sort(key=lambda pair: pair[0])
    return [message for _, message in timed[max(0, len(timed) - count) :]]


def _follow(kafka: Kafka, starts: dict[Place, int]) -> Iterator[Message]:
    consumer: Consumer = reader(kafka)
    try:
        consumer.assign([TopicPartition(*place, offset) for place, offset in starts.items()])
        while True:
            message = consumer.poll(POLL)
            if message is None:
                continue
            error = message.error()
            if error is None:
                yield message
            elif error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
    finally:
        consumer.close()


def _place(message: Message) -> Place:
    return Place(message.topic() or "", message.partition() or 0)


def _wanted(message: Message, start: Start) -> bool:
    """Not so for a record that lies behind the first of a time, but is itself of an earlier one."""
    return not isinstance(start, Since) or message.timestamp()[1] >= start.timestamp
