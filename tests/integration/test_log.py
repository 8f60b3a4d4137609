"""What is committed in a partition, read from any offset."""

from __future__ import annotations

from array import array
from functools import partial

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition

from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.errors import StateError
from pipeline.features.live_tables import Rows
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.new_client import LIBRDKAFKA_LOGGER
from pipeline.kafka.topics import create, table_partition
from pipeline.log.partition_log import PartitionLog
from pipeline.log.reader import LogReader
from pipeline.recovery.table_rows import replay
from tests.integration.harness import TIMEOUT, settled, until
from tests.support.live_tables import FEATURES, STREAM


def write(producer: Producer, topic: str, values: list[bytes]) -> None:
    """Write values in a transaction that is still to be ended."""
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, b"key", 0)
    assert producer.flush(TIMEOUT) == 0


def commit(producer: Producer, bootstrap: str, topics: Topics) -> None:
    """Commit a transaction, and wait until readers see it: that takes a moment longer."""
    producer.commit_transaction(TIMEOUT)
    until(partial(settled, bootstrap, [TopicPartition(topics.outcomes, 0)]), "the end of the transaction")


def test_a_partition_is_empty_until_something_is_committed(bootstrap: str, topic_prefix: str) -> None:
    topics = Topics(topic_prefix)
    create(Admin(Kafka(bootstrap=bootstrap)), topics, 1, 1)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": f"{topic_prefix}writer"},
        logger=LIBRDKAFKA_LOGGER,
    )
    producer.init_transactions(TIMEOUT)
    with LogReader(Kafka(bootstrap=bootstrap, prefix=topic_prefix)) as log:
        assert log.empty(topics.outcomes, 0)
        write(producer, topics.outcomes, [b"aborted", b"as well"])
        assert log.empty(topics.outcomes, 0)
        producer.abort_transaction(TIMEOUT)
        assert log.empty(topics.outcomes, 0)  # although its offsets begin at 0 and end at 3
        write(producer, topics.outcomes, [b"first", b"second"])
        assert log.empty(topics.outcomes, 0)
        commit(producer, bootstrap, topics)
        assert not log.empty(topics.outcomes, 0)
        assert log.empty(topics.predictions, 0)
        assert [message.value() for message in log.read_to_end(topics.outcomes, 0)] == [b"first", b"second"]
        assert log.at(topics.outcomes, 0, 4).value() == b"second"
        for offset in (1, 2, 5, 6):
            with pytest.raises(StateError, match=f"{topics.outcomes} has no record at offset {offset}"):
                log.at(topics.outcomes, 0, offset)


def test_a_record_that_a_transaction_hides_is_waited_for_no_longer_than_patience(
    bootstrap: str, topic_prefix: str
) -> None:
    topics = Topics(topic_prefix)
    create(Admin(Kafka(bootstrap=bootstrap)), topics, 1, 1)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": f"{topic_prefix}writer"},
        logger=LIBRDKAFKA_LOGGER,
    )
    producer.init_transactions(TIMEOUT)
    write(producer, topics.outcomes, [b"hidden"])
    with LogReader(Kafka(bootstrap=bootstrap, prefix=topic_prefix), patience=0.3) as log:
        with pytest.raises(StateError, match="has no record at offset 0"):
            log.at(topics.outcomes, 0, 0)
        commit(producer, bootstrap, topics)
        assert log.at(topics.outcomes, 0, 0).value() == b"hidden"


def test_a_table_is_restored_as_far_as_it_was_applied_though_it_seems_to_end_before(
    bootstrap: str, topic_prefix: str
) -> None:
    topics = Topics(topic_prefix, stream=STREAM)
    create(Admin(Kafka(bootstrap=bootstrap)), topics, 1, 1)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": f"{topic_prefix}writer"},
        logger=LIBRDKAFKA_LOGGER,
    )
    producer.init_transactions(TIMEOUT)
    topic, features = topics.table("couriers"), FEATURES.tables[1]
    write(producer, topic, [b'{"speed":1.0}'])
    producer.commit_transaction(TIMEOUT)
    write(producer, topic, [b'{"speed":2.0}'])
    with LogReader(Kafka(bootstrap=bootstrap, prefix=topic_prefix), patience=TIMEOUT) as reader:
        log, rows = PartitionLog(reader, topics, 0), Rows(features)
        restoring = replay(log, topic, 0, rows, 3)  # offset 1 has the marker of a transaction
        assert next(left for left in restoring if reader.end >= 0) == 1
        producer.commit_transaction(TIMEOUT)
        assert set(restoring) <= {1}
        assert rows.of("key") == array("d", [1.0, 2.0]).tobytes()
        reader.patience = 0.0
        with pytest.raises(KafkaException, match=f"{topic} cannot be read up to offset 9 of partition 0"):
            list(replay(log, topic, 0, Rows(features), 9))


def test_a_topic_that_a_broker_does_not_know_has_no_partition_for_a_table(
    bootstrap: str, topic_prefix: str
) -> None:
    topics = Topics(topic_prefix, stream=STREAM)
    client = Admin(Kafka(bootstrap=bootstrap))
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        table_partition(client, topics.table("items"), 1)
    create(client, topics, 2, 1)
    found = [table_partition(client, topics.table(name), 1) for name in ("items", "couriers")]
    assert found == [0, 1]
