"""Messages go to the record queues of their partitions, however a client mixes them.

`tests/integration` has the rest.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Config, Worker
from pipeline.config.topics import Topics
from pipeline.kafka.offsets import PartitionId
from pipeline.records.decoding import RejectedRecord
from pipeline.records.encoding import encode
from pipeline.records.inputs import RawMessage
from pipeline.task.record_queue import RecordQueue
from pipeline.task.task import Task
from pipeline.worker.clock import wall_clock
from pipeline.worker.source import CONSUME_SIZE, ConsumerSource
from tests.support.builders import interaction, join_settings, label, new_task
from tests.support.entries import delivered

TOPICS = Topics("")
PARTITIONS = 2
ASSIGNED: list[PartitionId] = [
    PartitionId(topic, partition) for topic in TOPICS.inputs for partition in range(PARTITIONS)
]
REVOKED: PartitionId = PartitionId(TOPICS.interactions, PARTITIONS)
UNKNOWN = -1001
"""What a client returns for a watermark that it has not seen."""


class Queue:
    """A consumer that hands over what was put in."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.left = list(messages)

    def poll(self, timeout: float) -> Message | None:  # noqa: ARG002 - as the client has it
        return self.left.pop(0) if self.left else None

    def consume(self, most: int, timeout: float) -> list[Message]:  # noqa: ARG002 - as the client has it
        consumed, self.left = self.left[:most], self.left[most:]
        return consumed

    def get_watermark_offsets(self, *_: Any, **__: Any) -> tuple[int, int]:
        return UNKNOWN, UNKNOWN

    def __getattr__(self, _: str) -> Mock:
        return Mock()


def message(topic_partition: PartitionId, offset: int, at: int = 5) -> Message:
    record = interaction(offset, at) if topic_partition[0] == TOPICS.interactions else label(offset, at)
    return delivered(RawMessage(*topic_partition, offset, b"1", encode(record)))


def end_of(topic_partition: PartitionId, offset: int) -> Message:
    error = KafkaError(KafkaError._PARTITION_EOF)
    return Message(topic=topic_partition[0], partition=topic_partition[1], offset=offset, error=error)


def new_consumer_source(
    queue: Queue, batch: int = 5_000, max_idle: str = "0s"
) -> tuple[ConsumerSource, dict[PartitionId, RecordQueue]]:
    """One that has read nothing, and the record queues that it reads into."""
    config = Config(join=join_settings(max_idle=max_idle), worker=Worker(batch=batch))
    source = ConsumerSource(queue, config)  # type: ignore[arg-type]  # all of a consumer that it uses
    source.assign(dict.fromkeys(ASSIGNED, 0))
    queues: dict[PartitionId, RecordQueue] = {}
    for partition in range(PARTITIONS):
        task: Task = new_task(config.join, partition)
        source.connect(partition, (task.interactions, task.labels))
        queues |= {
            PartitionId(TOPICS.interactions, partition): task.interactions,
            PartitionId(TOPICS.labels, partition): task.labels,
        }
    return source, queues


topic_partitions = st.lists(st.sampled_from([*ASSIGNED, REVOKED]) | st.just(ASSIGNED[0]), max_size=30)


ends = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(ASSIGNED)), max_size=4)


@given(order=topic_partitions, ends=ends)
def test_each_message_goes_to_its_topic_partition_in_order(
    order: list[PartitionId], ends: list[tuple[int, PartitionId]]
) -> None:
    messages = [
        message(topic_partition, order[:n].count(topic_partition)) for n, topic_partition in enumerate(order)
    ]
    for at, topic_partition in ends:
        messages.insert(at, end_of(topic_partition, order.count(topic_partition)))
    queue = Queue(messages)
    source, queues = new_consumer_source(queue)
    source.poll(0.0)
    assert not queue.left
    for topic_partition, record_queue in queues.items():
        assert len(record_queue) == order.count(topic_partition)
        for offset in range(len(record_queue)):
            record_queue.pop()
            raw = record_queue.source()
            assert (raw.topic, raw.partition, raw.offset) == (*topic_partition, offset)
    source.poll(0.0)
    assert {topic_partition for topic_partition, record_queue in queues.items() if record_queue.at_end} == {
        topic_partition for _, topic_partition in ends
    }


def test_no_more_than_a_batch_is_polled_at_once() -> None:
    topic_partition, batch = ASSIGNED[0], CONSUME_SIZE + 500
    source, queues = new_consumer_source(
        Queue([message(topic_partition, offset) for offset in range(3 * batch)]), batch
    )
    buffered = []
    for _ in range(2):
        source.poll(0.0)
        buffered.append(len(queues[topic_partition]))
    assert buffered == [1 + batch, 2 + 2 * batch]


def test_what_is_not_needed_stays_in_the_queue() -> None:
    batch, many = 2, 10
    queue = Queue(
        [message(topic_partition, offset) for offset in range(batch) for topic_partition in ASSIGNED]
    )
    source, _ = new_consumer_source(queue, batch)
    while queue.left:
        source.poll(0.0)
    queue.left = [message(ASSIGNED[0], batch + offset) for offset in range(many)]
    source.poll(0.0)
    assert len(queue.left) == many - 1


@pytest.mark.parametrize(("first", "other"), [TOPICS.inputs, TOPICS.inputs[::-1]])
def test_after_a_silence_an_input_is_waited_for_again(
    first: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic() + 1.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    queue = Queue([])
    source, queues = new_consumer_source(queue, max_idle="2s")
    awaited = queues[PartitionId(other, 0)]
    found = list[bool]()
    queue.left = [end_of(topic_partition, 0) for topic_partition in ASSIGNED]
    for later, came in ((0, 0), (100, 0), (0, 1), (1.5, 1), (0.6, 1), (0, 0)):
        now += later
        queue.left += [message(PartitionId(first, 0), len(found) + n) for n in range(came)]
        source.poll(0.0)
        found.append(awaited.at_end)
    assert found == [False, True, False, False, True, True]


@pytest.mark.parametrize(("behind", "accepted"), [(0, True), (60_000, False)])
def test_a_jump_waits_for_the_next_message_or_the_end_where_only_one_to_the_present_counts(
    behind: int, accepted: bool
) -> None:
    at = wall_clock() - behind  # and join.max_jump is a second
    queue = Queue([message(ASSIGNED[0], 0), message(ASSIGNED[0], 1, at)])
    source, queues = new_consumer_source(queue)
    found = queues[ASSIGNED[0]]
    source.poll(0.0)
    found.pop()
    source.poll(0.0)
    assert (len(found), found.waiting, found.at_end) == (0, at, False), "more may come"
    queue.left = [end_of(ASSIGNED[0], 2)]
    source.poll(0.0)
    assert (len(found), found.waiting, found.at_end) == (1, None, True)
    assert isinstance(found.pop(), RejectedRecord) is not accepted


def test_an_input_is_read_on_where_a_jump_waits_however_large_its_messages_are() -> None:
    queue = Queue([message(ASSIGNED[0], 0, 5)])
    source, queues = new_consumer_source(queue)
    found = queues[ASSIGNED[0]]
    queue.left += [message(ASSIGNED[0], 1 + n, 10_000) for n in range(9)]
    source.poll(0.0)
    found.bytes = 10**12
    paused = []
    for _ in range(3):
        source.apply_backpressure()
        paused.append(source.paused(0))
        if len(found):
            found.pop()
    assert (found.waiting, paused) == (10_000, [(True, False), (False, False), (False, False)])


def test_without_a_wait_an_input_at_its_end_stays_there() -> None:
    queue = Queue([end_of(topic_partition, 0) for topic_partition in ASSIGNED])
    source, queues = new_consumer_source(queue)
    source.poll(0.0)
    queue.left = [message(ASSIGNED[0], 0)]
    source.poll(0.0)
    assert queues[PartitionId(TOPICS.labels, 0)].at_end
