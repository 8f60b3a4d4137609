"""From the consumer to the inlets: what has come, where inputs end, and when to stop reading ahead."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from pipeline.config.tree import Config
from pipeline.errors import StateError
from pipeline.kafka.liveness import Pulse
from pipeline.kafka.topics import Topics
from pipeline.records.decoding import INTERACTIONS, LABELS, decode
from pipeline.records.inputs import sizes
from pipeline.task.record_queue import Arrived, Inlet
from pipeline.task.task import Task
from pipeline.worker.clock import wall_clock

FEWEST = 40_000
"""Messages of an input that are always read ahead, if their bytes allow: a fetch brings some thousands."""
SLICE = 1_000
"""Messages taken together: few enough to stay in the processor's cache, and mostly of one place."""

Place: TypeAlias = tuple[str, int]
"""A topic and a partition of it."""


@dataclass
class _Channel:
    """How far one place has been read."""

    read_to: int
    """The next offset to come."""
    inlet: Inlet | None = None
    """Where its messages go; none until its partition is restored."""
    fed: float = field(default_factory=time.monotonic)
    """When the last message came."""
    end: int = -1
    """Where the consumer has seen the end last."""
    paused: bool = True


class Intake:
    """Reads the assigned places into the inlets of their tasks.

    Parameters
    ----------
    consumer
        The group's.
    config
        The whole configuration.
    """

    def __init__(self, consumer: Consumer, config: Config) -> None:
        self._consumer = consumer
        self._join = config.join
        self._batch = config.worker.batch
        self._most = max(8 * self._batch, FEWEST)
        self._buffer = config.worker.buffer // 2
        self._topics = Topics(config.kafka.prefix)
        self._pulse = Pulse(consumer, self._topics.interactions)
        self._channels: dict[Place, _Channel] = {}

    def assign(self, starts: list[TopicPartition]) -> None:
        """Be responsible for these places from these offsets on, but read nothing before `connect`."""
        self._channels = {(start.topic, start.partition): _Channel(start.offset) for start in starts}
        self._consumer.assign(starts)
        self._consumer.pause(starts)

    def connect(self, task: Task) -> None:
        """Read into the inlets of a task that is restored."""
        for topic, inlet in zip(self._topics.inputs, (task.interactions, task.labels), strict=True):
            channel = self._channels[topic, task.partition]
            channel.inlet = inlet
            self._resume((topic, task.partition), channel)

    def clear(self) -> None:
        """Be responsible for nothing."""
        self._channels.clear()

    def receive(self, timeout: float) -> None:
        """Take what is there: at once if something is, so that nothing waits for a batch to fill.

        Parameters
        ----------
        timeout
            Seconds to wait if nothing is.

        Raises
        ------
        KafkaException
            The consumer reads no more, or no broker answers it.
        StateError
            Messages that were to be processed are gone.
        """
        first = self._consumer.poll(timeout)
        self._pulse.feel(heard=first is not None)
        if first is not None:
            self._read_on(first)
        self._mark_ends()

    def _read_on(self, first: Message) -> None:
        """Take a message and what else is there, if it is needed, for one batch at most.

        What is not needed yet waits in the client's queue: pausing an input throws that away.
        """
        left = self._batch if self._wanting() else 0
        messages = [first, *self._consumer.consume(min(SLICE, left), 0.0)]
        left -= len(messages) - 1
        while messages:
            self._feed(messages)
            messages = self._consumer.consume(min(SLICE, left), 0.0)
            left -= len(messages)

    def _wanting(self) -> bool:
        """Whether some input has not enough for a whole batch."""
        return any(
            len(channel.inlet) < self._batch
            for channel in self._channels.values()
            if channel.inlet is not None
        )

    def throttle(self) -> None:
        """Stop reading an input that runs ahead of the other, until the merge has caught up.

        Each place has a share of the buffer for itself: the merge needs both inputs, so neither may be kept
        from being read because the other has filled it.
        """
        for place, channel in self._channels.items():
            inlet = channel.inlet
            if inlet is None:
                continue
            share = self._buffer // len(self._channels)
            if not channel.paused and (len(inlet) > self._most or inlet.bytes > share):
                self._consumer.pause([TopicPartition(*place)])
                channel.paused = True
            elif channel.paused and len(inlet) < self._most // 2 and inlet.bytes <= share // 2:
                self._resume(place, channel)

    def paused(self, partition: int) -> tuple[bool, bool]:
        """Whether interactions, and labels, of a partition are not read for now."""
        interactions, labels = (self._channels[topic, partition].paused for topic in self._topics.inputs)
        return interactions, labels

    def _resume(self, place: Place, channel: _Channel) -> None:
        self._consumer.resume([TopicPartition(*place)])
        channel.paused = False

    def _feed(self, messages: list[Message]) -> None:
        latest = wall_clock() + self._join.max_ahead
        for place, delivered in self._by_place(messages).items():
            if place not in self._channels:  # it was taken away while the messages were on their way
                continue
            channel = self._channels[place]
            if channel.inlet is None:
                raise RuntimeError(f"{place} delivered messages before it was restored")
            channel.inlet.feed(self._decoded(place[0], delivered, latest))
            channel.read_to = (delivered[-1].offset() or 0) + 1
            channel.fed = time.monotonic()

    def _by_place(self, messages: list[Message]) -> dict[Place, list[Message]]:
        """The messages of each place; events are met."""
        topics, partitions = list(map(Message.topic, messages)), list(map(Message.partition, messages))
        # Not counted by `None`: an error that is compared with it leaves an exception behind.
        if not any(map(Message.error, messages)) and _alike(topics) and _alike(partitions):
            return {(topics[0] or "", partitions[0] or 0): messages}
        arrived: dict[Place, list[Message]] = defaultdict(list)
        for message, topic, partition in zip(messages, topics, partitions, strict=True):
            place = (topic or "", partition or 0)
            if message.error() is None:
                arrived[place].append(message)
            else:
                self._meet(message, place)
        return arrived

    def _decoded(self, topic: str, messages: list[Message], latest: int) -> Arrived:
        keys, values = list(map(Message.key, messages)), list(map(Message.value, messages))
        decoder = INTERACTIONS if topic == self._topics.interactions else LABELS
        return Arrived(
            messages,
            decode(keys, values, decoder, latest),
            sizes(keys, values, list(map(Message.headers, messages))),
        )

    def _meet(self, message: Message, place: Place) -> None:
        error = message.error()
        assert error is not None
        if error.code() == KafkaError._PARTITION_EOF:
            if place in self._channels:
                self._channels[place].end = message.offset() or 0
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise StateError(
                f"{place[0]} has lost messages of partition {place[1]} that were not yet processed: "
                f"{error.str()}. Its retention is too short for how far the worker is behind, or it was "
                "deleted and created anew"
            )
        else:
            raise KafkaException(error)

    def _mark_ends(self) -> None:
        """Find the inputs that the others need not wait for.

        An input's end is known from an event, and often sooner from the end that the last fetch saw.
        Where transactions wrote the input, their markers lie between the last message and that end;
        then only the event tells.
        """
        for place, channel in self._channels.items():
            if channel.inlet is None or channel.inlet.ready:
                continue
            _, end = self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
            ended = channel.read_to <= channel.end or 0 <= end <= channel.read_to
            quiet = (time.monotonic() - channel.fed) * 1000
            channel.inlet.at_end = ended and quiet >= self._join.max_idle


def _alike(column: Sequence[object]) -> bool:
    return column.count(column[0]) == len(column)
