from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from pipeline.config.settings import Config, Worker
from pipeline.features.tables import Tables
from pipeline.kafka.clients import group_consumer
from pipeline.kafka.offsets import PartitionId
from pipeline.model.model import Model
from pipeline.records.encoding import encode
from pipeline.task.record_queue import Position, RecordQueue
from pipeline.task.task import Task
from pipeline.worker.source import ConsumerSource
from tests.integration.harness import Message, Pipeline, until
from tests.support.builders import interaction, label, small_learner

BUFFER = 4 * 2**20
LARGE = 400_000
EVENTS = 16


def large(topic: str, at: int, record: object) -> Message:
    """A record with a field that nobody asked for."""
    value = json.loads(encode(record)) | {"description": "x" * LARGE}
    return Message(topic, b"1", json.dumps(value).encode(), at)


def test_large_messages_get_through_a_small_buffer(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    """Also where one input is ahead, whose messages alone would take more than all room."""
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    topics = pipeline.topics
    pipeline.produce(large(topics.interactions, n, interaction(n, n)) for n in range(EVENTS))
    config = Config(kafka=pipeline.kafka, worker=Worker(buffer=BUFFER))
    task = Task(0, Model(small_learner(), Tables(), 10), config.join, Position(0), Position(0))
    queues = (task.interactions, task.labels)
    with closing(group_consumer(config.kafka, config.worker)) as consumer:
        source = ConsumerSource(consumer, config)
        source.assign({PartitionId(topic, 0): 0 for topic in topics.inputs})
        source.connect(0, queues)
        seen = list[int]()

        def read() -> None:
            source.poll(0.1)
            seen.append(sum(queue.bytes for queue in queues))
            source.apply_backpressure()

        def all_read(queue: RecordQueue) -> bool:
            read()
            return queue.at_end or queue.bytes > BUFFER // 4

        until(lambda: all_read(task.interactions), "more interactions than their share")
        for _ in range(3):
            read()
        pipeline.produce(large(topics.labels, n, label(n, n + 1)) for n in range(EVENTS))

        def joined() -> bool:
            read()
            task.advance(5)
            return task.counters["labels"] == task.counters["interactions"] == EVENTS

        until(joined, "all messages")
    assert task.counters["predictions"] == task.counters["labelled"] == EVENTS
    assert max(seen) <= BUFFER + LARGE
    assert [queue.bytes for queue in queues] == [0, 0]
