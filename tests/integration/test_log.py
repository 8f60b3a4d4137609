"""What is committed in a partition, read from any offset."""

from __future__ import annotations

from functools import partial

import pytest
from confluent_kafka import Producer, TopicPartition

from pipeline.config.tree import Kafka
from pipeline.errors import StateError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.clients import LIBRDKAFKA_LOGGER
from pipeline.kafka.log import LogReader
from pipeline.kafka.topics import Topics, create
from tests.integration.harness import TIMEOUT, settled, until


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
