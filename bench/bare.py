"""The floor: Kafka and JSON with nothing in between, in the shape of the pipeline.

It reads both inputs, decodes each message, writes one small record for it, and commits outputs and input
offsets in one transaction a batch. There is no order, no join, no features, no learner, no check and no way
back after a fault: a pipeline that does less than this does not do its job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Final

import msgspec
from confluent_kafka import Consumer, KafkaException, Message, Producer

from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.new_client import client_settings
from pipeline.kafka.topics import create
from pipeline.records.fields import Id

POLL: Final = 0.1
"""Seconds to wait for a first message."""


class InputRecord(msgspec.Struct, gc=False):
    """What is decoded of an input, whichever it is."""

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: int


class OutputRecord(msgspec.Struct, gc=False):
    """What is written for it."""

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: int
    score: float
    predicted: bool
    model_version: int


def outputs(kafka: Kafka) -> Topics:
    """Return the topics that it writes to, beside those of the pipeline with the same inputs."""
    return Topics(f"{kafka.prefix}bare-")


def group(kafka: Kafka) -> str:
    """Return the group that it commits offsets for."""
    return f"{kafka.group}-bare"


@contextmanager
def bare(kafka: Kafka, batch: int, wait: float) -> Iterator[BaseProcess]:
    """Run the loop in a process of its own; it is killed in the end.

    Parameters
    ----------
    kafka
        Of the pipeline whose inputs are read.
    batch
        Most messages in a transaction.
    wait
        Seconds to wait for a batch to fill once there is a first message.
    """
    create(Admin(kafka), outputs(kafka), partitions=1, replication=1)
    process = get_context("spawn").Process(target=loop, args=(kafka, batch, wait), daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def loop(kafka: Kafka, batch: int, wait: float) -> None:
    """Consume, answer and commit until killed."""
    to = outputs(kafka)
    interactions, labels = Topics(kafka.prefix).inputs
    routes = {interactions: to.predictions, labels: to.outcomes}
    consumer, producer = _clients(kafka)
    consumer.subscribe(list(routes))
    producer.init_transactions()
    while True:
        first = consumer.poll(POLL)
        if first is not None:
            _answer(consumer, producer, [first, *consumer.consume(batch - 1, wait)], routes)


def _clients(kafka: Kafka) -> tuple[Consumer, Producer]:
    """Make clients with the settings that the pipeline's have, as far as they concern speed."""
    consumer = Consumer(
        client_settings(kafka)
        | {
            "group.id": group(kafka),
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 10,
            "fetch.wait.max.ms": 100,
        }
    )
    producer = Producer(
        client_settings(kafka)
        | {
            "transactional.id": group(kafka),
            "linger.ms": 5,
            "compression.type": "lz4",
            "retry.backoff.ms": 5,
            "queue.buffering.max.messages": 2_000_000,
        }
    )
    return consumer, producer


def _answer(
    consumer: Consumer, producer: Producer, messages: Sequence[Message], routes: dict[str, str]
) -> None:
    decode, encode = msgspec.json.Decoder(InputRecord).decode, msgspec.json.Encoder().encode
    producer.begin_transaction()
    for message in messages:
        if (error := message.error()) is not None:
            raise KafkaException(error)
        record = decode(message.value() or b"")
        output = OutputRecord(
            record.event_id, record.user_id, record.video_id, record.timestamp, 0.123456789, True, 1
        )
        producer.produce(
            routes[message.topic() or ""], encode(output), message.key(), timestamp=record.timestamp
        )
    offsets = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
    producer.commit_transaction()
