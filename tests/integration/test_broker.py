"""What the pipeline needs of a broker."""

from __future__ import annotations

import subprocess
from functools import partial

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from pipeline.broker.class_archive import ensure_class_archive
from pipeline.broker.java import AOT_VERSION, java_version
from pipeline.broker.launch import java_program
from tests.integration.harness import TIMEOUT, settled, until


def create_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(topic, num_partitions=1)]).values():
        created.result()


def read_to_end(consumer: Consumer, topic: str) -> list[bytes | None]:
    """The values of partition 0 up to its end."""
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes | None] = []
    while message := consumer.poll(TIMEOUT):
        if error := message.error():
            assert error.code() == KafkaError._PARTITION_EOF
            return values
        values.append(message.value())
    raise AssertionError("no end of the partition in time")


def test_aborted_records_are_invisible_and_offset_metadata_comes_back(
    bootstrap: str, topic_prefix: str
) -> None:
    topic = f"{topic_prefix}events"
    create_topic(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic_prefix}writer"})
    producer.init_transactions(TIMEOUT)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic_prefix}readers",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )

    producer.begin_transaction()
    producer.produce(topic, b"aborted")
    producer.flush(TIMEOUT)
    producer.abort_transaction(TIMEOUT)
    producer.begin_transaction()
    producer.produce(topic, b"committed")
    producer.send_offsets_to_transaction(
        [TopicPartition(topic, 0, 7, metadata="state record 41")], consumer.consumer_group_metadata(), 30
    )
    producer.commit_transaction(TIMEOUT)
    until(partial(settled, bootstrap, [TopicPartition(topic, 0)]), "the end of the transaction")

    assert read_to_end(consumer, topic) == [b"committed"]
    [committed] = consumer.committed([TopicPartition(topic, 0)], TIMEOUT)
    assert (committed.offset, committed.metadata) == (7, "state record 41")
    consumer.close()


def test_java_starts_from_the_archive_of_the_brokers_classes() -> None:
    ensure_class_archive()
    program = java_program()
    java, *options = program.command()
    or_fail = "-XX:AOTMode=on" if java_version(program.java) >= AOT_VERSION else "-Xshare:on"
    done = subprocess.run([java, or_fail, *options, "-version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert program.archive.stat().st_size > 10_000_000
