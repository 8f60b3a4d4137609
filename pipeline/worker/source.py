"""From the consumer to the inlets: what has come, where inputs end, and when to stop reading ahead."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from pipeline.config.tree import Config
from pipeline.errors import StateError
from pipeline.kafka.errors import is_offset_lost, is_partition_end
from pipeline.kafka.liveness import Liveness
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.topics import Topics
from pipeline.records.decoding import INTERACTION_DECODER, LABEL_DECODER, decode
from pipeline.records.inputs import sizes
from pipeline.task.record_queue import PolledMessages, RecordQueue
from pipeline.worker.clock import wall_clock

MIN_READ_AHEAD = 40_000
"""Messages of an input that are always read ahead, if their bytes allow: a fetch brings some thousands."""
CONSUME_SIZE = 1_000
"""Messages taken together: few enough to stay in the processor's cache, and mostly of one place."""


@dataclass
class _Input:
    """How far one place has been read."""

    position: int
    """The next offset to come."""
    queue: RecordQueue | None = None
    """Where its messages go; none until its partition is restored."""
    last_message_at: float = field(default_factory=time.monotonic)
    """When the last message came."""
    end: int = -1
    """Where the consumer has seen the end last."""
    paused: bool = True


class ConsumerSource:
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
        self._batch_size = config.worker.batch
        self._max_read_ahead = max(8 * self._batch_size, MIN_READ_AHEAD)
        self._buffer = config.worker.buffer // 2
        self._topics = Topics(config.kafka.prefix)
        self._liveness = Liveness(consumer, self._topics.interactions)
        self._inputs: dict[PartitionId, _Input] = {}

    def assign(self, offsets: Mapping[PartitionId, int]) -> None:
        """Take over input partitions from these offsets on; each is paused until `connect`."""
        self._inputs = {topic_partition: _Input(offset) for topic_partition, offset in offsets.items()}
        starts = [TopicPartition(*topic_partition, offset) for topic_partition, offset in offsets.items()]
        self._consumer.assign(starts)
        self._consumer.pause(starts)

    def connect(self, partition: int, queues: tuple[RecordQueue, RecordQueue]) -> None:
        """Read a partition's interactions and labels into the queues of its task, which is restored."""
        for topic, queue in zip(self._topics.inputs, queues, strict=True):
            input_ = self._inputs[PartitionId(topic, partition)]
            input_.queue = queue
            self._resume(PartitionId(topic, partition), input_)

    def clear(self) -> None:
        """Read no input partition any more."""
        self._inputs.clear()

    def poll(self, timeout: float) -> None:
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
        self._liveness.check(received=first is not None)
        if first is not None:
            self._read_batch(first)
        self._update_at_end()

    def _read_batch(self, first: Message) -> None:
        """Take a message and what else is there, if it is needed, for one batch at most.

        What is not needed yet waits in the client's queue: pausing an input throws that away.
        """
        left = self._batch_size if self._needs_messages() else 0
        messages = [first, *self._consumer.consume(min(CONSUME_SIZE, left), 0.0)]
        left -= len(messages) - 1
        while messages:
            self._enqueue(messages)
            messages = self._consumer.consume(min(CONSUME_SIZE, left), 0.0)
            left -= len(messages)

    def _needs_messages(self) -> bool:
        """Whether some input has not enough for a whole batch."""
        return any(
            len(input_.queue) < self._batch_size
            for input_ in self._inputs.values()
            if input_.queue is not None
        )

    def apply_backpressure(self) -> None:
        """Stop reading an input that runs ahead of the other, until the merge has caught up.

        Each place has a share of the buffer for itself: the merge needs both inputs, so neither may be kept
        from being read because the other has filled it.
        """
        for topic_partition, input_ in self._inputs.items():
            queue = input_.queue
            if queue is None:
                continue
            share = self._buffer // len(self._inputs)
            if not input_.paused and (len(queue) > self._max_read_ahead or queue.bytes > share):
                self._consumer.pause([TopicPartition(*topic_partition)])
                input_.paused = True
            elif input_.paused and len(queue) < self._max_read_ahead // 2 and queue.bytes <= share // 2:
                self._resume(topic_partition, input_)

    def paused(self, partition: int) -> tuple[bool, bool]:
        """Whether interactions, and labels, of a partition are not read for now."""
        interactions, labels = (
            self._inputs[PartitionId(topic, partition)].paused for topic in self._topics.inputs
        )
        return interactions, labels

    def _resume(self, topic_partition: PartitionId, input_: _Input) -> None:
        self._consumer.resume([TopicPartition(*topic_partition)])
        input_.paused = False

    def _enqueue(self, messages: list[Message]) -> None:
        latest = wall_clock() + self._join.max_ahead
        for topic_partition, delivered in self._by_partition(messages).items():
            if topic_partition not in self._inputs:  # it was taken away while the messages were on their way
                continue
            input_ = self._inputs[topic_partition]
            if input_.queue is None:
                raise RuntimeError(f"{topic_partition} delivered messages before it was restored")
            input_.queue.feed(self._decoded(topic_partition[0], delivered, latest))
            input_.position = (delivered[-1].offset() or 0) + 1
            input_.last_message_at = time.monotonic()

    def _by_partition(self, messages: list[Message]) -> dict[PartitionId, list[Message]]:
        """The messages of each place; events are met."""
        topics, partitions = list(map(Message.topic, messages)), list(map(Message.partition, messages))
        # Not counted by `None`: an error that is compared with it leaves an exception behind.
        if not any(map(Message.error, messages)) and _all_equal(topics) and _all_equal(partitions):
            return {PartitionId(topics[0] or "", partitions[0] or 0): messages}
        polled: dict[tuple[str, int], list[Message]] = defaultdict(list)
        for message, topic, partition in zip(messages, topics, partitions, strict=True):
            if message.error() is None:
                polled[topic or "", partition or 0].append(message)
            else:
                self._handle_event(message, PartitionId(topic or "", partition or 0))
        return {PartitionId(*topic_partition): found for topic_partition, found in polled.items()}

    def _decoded(self, topic: str, messages: list[Message], latest: int) -> PolledMessages:
        keys, values = list(map(Message.key, messages)), list(map(Message.value, messages))
        decoder = INTERACTION_DECODER if topic == self._topics.interactions else LABEL_DECODER
        return PolledMessages(
            messages,
            decode(keys, values, decoder, latest),
            sizes(keys, values, list(map(Message.headers, messages))),
        )

    def _handle_event(self, message: Message, topic_partition: PartitionId) -> None:
        error = message.error()
        assert error is not None
        if is_partition_end(error):
            if topic_partition in self._inputs:
                self._inputs[topic_partition].end = message.offset() or 0
        elif is_offset_lost(error):
            raise StateError(
                f"{topic_partition[0]} has lost messages of partition {topic_partition[1]} that were not "
                "yet processed: "
                f"{error.str()}. Its retention is too short for how far the worker is behind, or it was "
                "deleted and created anew"
            )
        else:
            raise KafkaException(error)

    def _update_at_end(self) -> None:
        """Find the inputs that the others need not wait for.

        An input's end is known from an event, and often sooner from the end that the last fetch saw.
        Where transactions wrote the input, their markers lie between the last message and that end;
        then only the event tells.
        """
        for topic_partition, input_ in self._inputs.items():
            if input_.queue is None or input_.queue.ready:
                continue
            _, end = self._consumer.get_watermark_offsets(TopicPartition(*topic_partition), cached=True)
            ended = input_.position <= input_.end or 0 <= end <= input_.position
            quiet = (time.monotonic() - input_.last_message_at) * 1000
            input_.queue.at_end = ended and quiet >= self._join.max_idle


def _all_equal(column: Sequence[object]) -> bool:
    return column.count(column[0]) == len(column)
