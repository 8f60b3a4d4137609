"""Partitions that are added to an input while a worker runs."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewPartitions

from pipeline.config.settings import Kafka
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.clients import groupless_consumer
from pipeline.records.encoding import encode
from tests.integration.harness import TIMEOUT, Message, Pipeline, input_producer, until
from tests.support.builders import interaction

NOTICED = 60.0
"""Seconds after which the default of the client, five minutes, would be what is seen."""


def test_a_worker_ends_soon_and_leaves_the_new_partition_alone(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    topic = pipeline.topics.interactions
    pipeline.produce([Message(topic, b"1", encode(interaction("e", 1)))])
    process, client = pipeline.start_worker(), Admin(Kafka(bootstrap=bootstrap))
    try:
        with pipeline.follow(pipeline.topics.predictions) as predictions:
            until(lambda: predictions.reached(1), "the prediction", process)
        for created in client.create_partitions([NewPartitions(topic, 2)]).values():
            created.result(TIMEOUT)
        producer = input_producer(bootstrap)
        producer.produce(topic, encode(interaction("later", 2)), b"1", 1)
        assert producer.flush(TIMEOUT) == 0
        assert process.wait(NOTICED) == 5
    finally:
        process.kill()
        process.wait()
    said = pipeline.log_of("worker").read_text()
    assert f"{topic} has more partitions" in said
    assert "Nothing is lost" in said
    consumer = groupless_consumer(pipeline.kafka)
    try:
        assert consumer.get_watermark_offsets(TopicPartition(topic, 1), TIMEOUT) == (0, 1)
    finally:
        consumer.close()
    assert len(pipeline.read(pipeline.topics.predictions)) == 1
