"""Messages that a client delivers hold in memory what their methods say."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Message as Delivered
from confluent_kafka import TopicPartition

from pipeline.kafka.clients import groupless_consumer
from pipeline.kafka.message_reader import MessageReader
from pipeline.records.inputs import RawMessage
from tests.integration.harness import TIMEOUT, Pipeline, input_producer, until

HEADERS: list[tuple[str, str | bytes | None]] = [("one", b"1"), ("two", None)]


@pytest.mark.parametrize("headers", [None, HEADERS])
def test_delivered_messages_hold_in_memory_what_their_methods_say(
    headers: list[tuple[str, str | bytes | None]] | None, bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline, producer = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2), input_producer(bootstrap)
    topics = pipeline.topics
    pairs = [(b"7", b"value"), (None, b""), (b"", None), (b"key", bytes(range(256)))]
    places = [(topics.interactions, 1), (topics.labels, 1), (topics.interactions, 0)]
    for topic, partition in places:
        for key, value in pairs:
            producer.produce(topic, value, key, partition, headers=headers)
    assert producer.flush(TIMEOUT) == 0
    messages = list[Delivered]()
    with closing(groupless_consumer(pipeline.kafka)) as consumer:
        consumer.assign([TopicPartition(*place, 0) for place in places])

        def read() -> bool:
            messages.extend(consumer.consume(100, 0.1))
            return len(messages) == len(places) * (len(pairs) + 1)

        until(read, "all messages, and the ends")
    reader = MessageReader()
    delivered = [message for message in messages if message.error() is None]
    events = [message for message in messages if message.error() is not None]
    texts = reader.texts(delivered)  # before headers are asked for
    assert texts.sizes.tolist() == [RawMessage.of(message).size for message in delivered]
    for row, message in enumerate(delivered):
        assert (texts.keys[row], texts.values[row]) == (message.key() or b"", message.value() or b"")
    by_partition = {
        place: [message for message in delivered if (message.topic(), message.partition()) == place]
        for place in places
    }
    assert all(len(own) == len(pairs) and reader.of_one_partition(own) for own in by_partition.values())
    first, *others = by_partition.values()
    assert not any(reader.of_one_partition([*first, *other]) for other in others)
    assert not any(reader.of_one_partition([*first, event]) for event in events)
