"""Read the inputs into the tasks' record queues: messages, the ends of inputs, backpressure."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from pipeline.config.settings import Config
from pipeline.config.topics import topics_of
from pipeline.errors import StateError
from pipeline.kafka.access.errors import is_offset_lost, is_partition_end
from pipeline.kafka.liveness import Liveness
from pipeline.kafka.message_reader import MessageReader
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.registry import registry_of
from pipeline.records.column_decoder import ColumnDecoder
from pipeline.records.decoding import InputDecoder
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Interaction, Label
from pipeline.records.schemas import SchemaUnavailableError
from pipeline.task.record_queue import RecordQueue
from pipeline.worker.clock import wall_clock
from pipeline.worker.schema_lookup import SchemaLookup

MIN_READ_AHEAD = 40_000
"""Messages of an input that may always be read ahead, if the buffer allows: a fetch returns thousands."""
CONSUME_SIZE = 1_000
"""Messages decoded together: few enough for the processor's cache, and mostly of one partition."""


@dataclass
class _Input:
    """How far one partition of an input has been read."""

    position: int
    """The offset of the next message."""
    queue: RecordQueue | None = None
    """Where its messages go; None until its partition is restored."""
    last_message_at: float = field(default_factory=time.monotonic)
    """When the last message arrived, in seconds of the monotonic clock."""
    began_at: float = 0.0
    """When a message last came while the queue was empty, in seconds of the monotonic clock."""
    end: int = -1
    """Offset at which the consumer reported the end last."""
    paused: bool = True
    held: list[Message] = field(default_factory=list)
    """Messages behind `position` that wait for the schema of the first of them."""


class ConsumerSource:
    """Reads the assigned partitions of both inputs into the record queues of their tasks.

    Parameters
    ----------
    consumer
        A consumer of the group.
    config
        The whole configuration.
    """

    def __init__(self, consumer: Consumer, config: Config) -> None:
        self._consumer = consumer
        self._join = config.join
        self._batch_size = config.worker.batch
        self._max_read_ahead = max(8 * self._batch_size, MIN_READ_AHEAD)
        self._buffer = config.worker.buffer // 2
        self._topics = topics_of(config)
        self.lookup = SchemaLookup(registry_of(config.registry)) if config.stream.needs_registry else None
        """Asks the schema registry; None where nothing has schemas."""
        self.decoders = InputDecoders.of(config.stream, self.lookup)
        self._reader = MessageReader()
        self._to_columns = [ColumnDecoder(decoder, texts_of=self._reader.texts) for decoder in self.decoders]
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
        """Read the messages that are there; no message waits for a batch to fill.

        Parameters
        ----------
        timeout
            Seconds to wait for a first message.

        Raises
        ------
        KafkaException
            The consumer cannot go on, or no broker answers it.
        StateError
            Messages that were not yet processed have been deleted.
        """
        self._feed_held()
        first = self._consumer.poll(timeout)
        self._liveness.check(received=first is not None)
        if first is not None:
            self._read_batch(first)
        self._update_at_end()

    def _read_batch(self, first: Message) -> None:
        """Enqueue a message and, as far as the tasks need them, those behind it, for one batch at most.

        Other messages stay in the client's queue, which a pause of their input would throw away. Large
        messages are taken a few at a time, so that no input exceeds its share of the buffer by much.
        """
        left = self._batch_size if self._needs_messages() else 0
        messages = [first, *self._consume_like(first, left)]
        left -= len(messages) - 1
        while messages:
            self._enqueue(messages)
            if self._over_share():
                return
            messages = self._consume_like(messages[-1], left)
            left -= len(messages)

    def _consume_like(self, message: Message, limit: int) -> list[Message]:
        """Take messages that are at hand, as many as fit into a share if they are as large as this one."""
        fitting = max(1, self._share() // max(1, len(message.value() or b"")))
        return self._consumer.consume(min(CONSUME_SIZE, limit, fitting), 0.0)

    def _share(self) -> int:
        """Return the bytes of the buffer that each input partition has for itself."""
        return self._buffer // max(1, len(self._inputs))

    def _over_share(self) -> bool:
        """Return whether the queue of some input holds more than its share."""
        share = self._share()
        return any(input_.queue.bytes > share for input_ in self._inputs.values() if input_.queue is not None)

    def _needs_messages(self) -> bool:
        """Return whether some record queue holds less than a batch."""
        return any(
            len(input_.queue) < self._batch_size
            for input_ in self._inputs.values()
            if input_.queue is not None
        )

    def apply_backpressure(self) -> None:
        """Pause an input that is ahead of the other, until the merge has caught up.

        Each input partition has its own share of the buffer: the merge needs both inputs, so one must not
        be stopped because the other has filled the buffer.
        """
        for topic_partition, input_ in self._inputs.items():
            queue = input_.queue
            if queue is None:
                continue
            share = self._share()
            waits = not len(queue)  # perhaps for messages that confirm a jump
            if not (input_.paused or waits) and (len(queue) > self._max_read_ahead or queue.bytes > share):
                self._consumer.pause([TopicPartition(*topic_partition)])
                input_.paused = True
            elif (
                input_.paused
                and not input_.held
                and (waits or (len(queue) < self._max_read_ahead // 2 and queue.bytes <= share // 2))
            ):
                self._resume(topic_partition, input_)

    def paused(self, partition: int) -> tuple[bool, bool]:
        """Return whether interactions, and labels, of a partition are paused."""
        interactions, labels = (
            self._inputs[PartitionId(topic, partition)].paused for topic in self._topics.inputs
        )
        return interactions, labels

    def held(self, partition: int) -> tuple[int, int]:
        """Return how many interactions, and labels, of a partition wait for their schema."""
        interactions, labels = (
            len(self._inputs[PartitionId(topic, partition)].held) for topic in self._topics.inputs
        )
        return interactions, labels

    def lag(self, partition: int, positions: tuple[int, int]) -> tuple[int | None, int | None]:
        """Return how many records of interactions, and labels, of a partition are left behind positions.

        Parameters
        ----------
        partition
            The number of the partition.
        positions
            The offsets of the next interaction and the next label to process.

        Returns
        -------
        tuple
            None where the client has not fetched anything yet, which tells it the end.
        """
        interactions, labels = (
            self._lag(PartitionId(topic, partition), position)
            for topic, position in zip(self._topics.inputs, positions, strict=True)
        )
        return interactions, labels

    def _lag(self, topic_partition: PartitionId, position: int) -> int | None:
        queue = self._inputs[topic_partition].queue
        if queue is not None and queue.at_end and not len(queue):
            return 0  # what is left before the end are markers of transactions
        _, end = self._consumer.get_watermark_offsets(TopicPartition(*topic_partition), cached=True)
        return max(0, end - position) if end >= 0 else None

    def _resume(self, topic_partition: PartitionId, input_: _Input) -> None:
        self._consumer.resume([TopicPartition(*topic_partition)])
        input_.paused = False

    def _enqueue(self, messages: list[Message]) -> None:
        latest = wall_clock() + self._join.max_ahead
        for topic_partition, delivered in self._by_partition(messages).items():
            if topic_partition not in self._inputs:  # revoked while the messages were on their way
                continue
            input_ = self._inputs[topic_partition]
            if input_.queue is None:
                raise RuntimeError(f"{topic_partition} delivered messages before it was restored")
            input_.last_message_at = time.monotonic()
            if input_.held:  # these were on their way when the input was paused
                input_.held += delivered
            else:
                self._feed(topic_partition, input_, delivered, latest)

    def _feed_held(self) -> None:
        """Enqueue the messages that have waited for a schema which is known by now."""
        latest = wall_clock() + self._join.max_ahead
        for topic_partition, input_ in self._inputs.items():
            if input_.held:
                held, input_.held = input_.held, []
                self._feed(topic_partition, input_, held, latest)

    def _feed(
        self, topic_partition: PartitionId, input_: _Input, messages: list[Message], latest: int
    ) -> None:
        """Enqueue messages up to the first whose schema is not known yet, and hold back the others."""
        assert input_.queue is not None
        ready = self._ready(topic_partition.topic, messages)
        try:
            if ready:
                if not len(input_.queue):
                    input_.began_at = time.monotonic()
                decoder = self._to_columns[topic_partition.topic != self._topics.interactions]
                input_.queue.feed(decoder.decode(messages[:ready], latest))
                input_.position = (messages[ready - 1].offset() or 0) + 1
        except SchemaUnavailableError:  # that there is none was known a moment ago, and is asked again now
            ready = 0
        input_.held = messages[ready:]
        if input_.held:
            input_.queue.at_end = False
            if not input_.paused:
                self._consumer.pause([TopicPartition(*topic_partition)])
                input_.paused = True

    def _ready(self, topic: str, messages: list[Message]) -> int:
        """Return how many of the first messages can be decoded now."""
        ready = self._decoder(topic).ready
        return len(messages) if ready is None else ready(list(map(Message.value, messages)))

    def _decoder(self, topic: str) -> InputDecoder[Interaction] | InputDecoder[Label]:
        of_interactions = topic == self._topics.interactions
        return self.decoders.interactions if of_interactions else self.decoders.labels

    def _by_partition(self, messages: list[Message]) -> dict[PartitionId, list[Message]]:
        """Group messages by input partition, and handle the events among them."""
        if self._reader.of_one_partition(messages):
            return {_partition_of(messages[0]): messages}
        polled: dict[PartitionId, list[Message]] = defaultdict(list)
        for message in messages:
            if message.error() is None:
                polled[_partition_of(message)].append(message)
            else:
                self._handle_event(message, _partition_of(message))
        return polled

    def _handle_event(self, message: Message, topic_partition: PartitionId) -> None:
        error = message.error()
        assert error is not None
        if is_partition_end(error):
            if topic_partition in self._inputs:
                self._inputs[topic_partition].end = message.offset() or 0
        elif is_offset_lost(error):
            raise StateError(
                f"{topic_partition.topic} has lost messages of partition {topic_partition.partition} that "
                f"were not yet processed: {error.str()}. Its retention is too short for how far the worker "
                "is behind, or it was deleted and created anew"
            )
        else:
            raise KafkaException(error)

    def _update_at_end(self) -> None:
        """Find the inputs that are at their ends, for which the merge need not wait.

        An event reports the end, and often the last fetch has seen it sooner. Where transactions wrote the
        input, their markers lie between the last message and the end of that fetch; then only the event
        tells. After a silence, either may be older than what the other input holds up: so `join.max_idle`
        counts from when that came. What jumps to the present is right: nothing follows that could confirm it.
        """
        for topic_partition, input_ in self._inputs.items():
            queue = input_.queue
            if queue is None or queue.time is not None or input_.held:
                continue
            if queue.at_end and not self._join.max_idle:
                continue
            _, end = self._consumer.get_watermark_offsets(TopicPartition(*topic_partition), cached=True)
            ended = input_.position <= input_.end or 0 <= end <= input_.position
            quiet_since = max(input_.last_message_at, self._awaited_since(topic_partition))
            quiet = (time.monotonic() - quiet_since) * 1000
            if ended and quiet >= self._join.max_idle:
                queue.pause(wall_clock() - self._join.max_jump)
            else:
                queue.at_end = False

    def _awaited_since(self, topic_partition: PartitionId) -> float:
        """Return when messages came to the partition's other input that wait for this one; 0 if none do."""
        interactions, labels = self._topics.inputs
        topic = labels if topic_partition.topic == interactions else interactions
        other = self._inputs[PartitionId(topic, topic_partition.partition)]
        return other.began_at if other.queue is not None and len(other.queue) else 0.0


def _partition_of(message: Message) -> PartitionId:
    return PartitionId(message.topic() or "", message.partition() or 0)
