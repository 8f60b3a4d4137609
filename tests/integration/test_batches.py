"""A batch of the producer fits into each topic that a worker writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from pipeline.config.settings import Config
from pipeline.config.topics import LARGEST_DEAD_LETTER
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.clients import transactional_producer
from pipeline.kafka.producer import flush
from pipeline.kafka.topics import output_limits
from pipeline.recovery.checkpoint_writer import CHUNK
from tests.integration.harness import TIMEOUT, Pipeline, until

CHUNKS = 6


@pytest.mark.parametrize("limit", [None, 2**20])
def test_a_transaction_of_large_records_is_written(
    limit: int | None, bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    """They are as large as chunks of snapshots, and do not compress. Topics of before have the limit."""
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    config, topics, client = Config(kafka=pipeline.kafka), pipeline.topics, Admin(pipeline.kafka)
    if limit is not None:
        entry = ConfigEntry("max.message.bytes", str(limit), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topics.checkpoints, incremental_configs=[entry])
        [altered] = client.incremental_alter_configs([resource]).values()
        altered.result()
        until(
            lambda: output_limits(client, topics).batch < limit, "the limit"
        )  # it is in force some time later
    size = output_limits(client, topics).batch
    producer = transactional_producer(
        config.kafka, config.worker, "worker", LARGEST_DEAD_LETTER, batch_bytes=size
    )
    producer.init_transactions(TIMEOUT)
    producer.begin_transaction()
    for topic in topics.outputs:
        for number in range(CHUNKS):
            producer.produce(topic, os.urandom(CHUNK), str(number), partition=0)
    flush(producer, TIMEOUT)
    producer.commit_transaction(TIMEOUT)
    for topic in topics.outputs:
        assert len(pipeline.read(topic)) == CHUNKS
