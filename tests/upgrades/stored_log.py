"""A group's log in a file: all records with their offsets, the committed offsets, and inputs still to come.

A state record names other records by their offsets. So a log is loaded with the offsets that it had, the gaps
that the markers of transactions and aborted records take included.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Final, NamedTuple, cast

import msgspec
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    Producer,
    TopicPartition,
)

from pipeline.config.topics import Topics
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.new_client import LIBRDKAFKA_LOGGER
from pipeline.kafka.clients import groupless_consumer
from pipeline.log.reader import LogReader
from tests.integration.harness import TIMEOUT, Message, Pipeline, until

FOLDER: Final = Path(__file__).parent
SUFFIX: Final = ".msgpack.xz"
FILLER: Final = b"aborted"
"""Value of the records that take the offsets of records that were aborted."""


class StoredHeader(msgspec.Struct, frozen=True, array_like=True):
    """A header of a record."""

    name: str
    value: bytes | None


class StoredRecord(msgspec.Struct, frozen=True, array_like=True):
    """A committed record."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: list[StoredHeader]


class StoredPartition(msgspec.Struct, frozen=True):
    """The committed records of a topic's partition."""

    topic: str
    """Its name, with the prefix."""
    partition: int
    records: list[StoredRecord]
    end: int
    """The offset after the last record or marker."""


class StoredOffset(msgspec.Struct, frozen=True, array_like=True):
    """A committed offset of the group."""

    topic: str
    partition: int
    offset: int
    metadata: str


class StoredMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message that is still to be sent."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int


class StoredLog(msgspec.Struct, frozen=True):
    """What a release wrote."""

    release: str
    prefix: str
    partitions: int
    environment: dict[str, str]
    """The settings of its workers, by variable."""
    logs: list[StoredPartition]
    offsets: list[StoredOffset]
    rest: list[StoredMessage]
    """The inputs that follow, in the order in which they are sent."""
    digests: dict[str, str]
    """Of all outputs by topic, as this release would have gone on: see `digests`."""

    @classmethod
    def read(cls, file: Path) -> StoredLog:
        """Read it from a file."""
        return msgspec.msgpack.decode(lzma.decompress(file.read_bytes()), type=cls)

    def write(self, folder: Path) -> Path:
        """Write it to a file with the release's name."""
        file = folder / (self.release + SUFFIX)
        file.write_bytes(lzma.compress(msgspec.msgpack.encode(self), preset=9 | lzma.PRESET_EXTREME))
        return file

    def messages(self) -> list[Message]:
        """Return the inputs that follow."""
        return [Message(each.topic, each.key, each.value, each.timestamp) for each in self.rest]


def pipeline_of(bootstrap: str, prefix: str, folder: Path, partitions: int) -> Pipeline:
    """Return a pipeline with a topic for label requests."""
    topics = Topics(prefix, requests_labels=True)
    return Pipeline(bootstrap, prefix, folder, partitions, topics=topics)


def dump(pipeline: Pipeline) -> tuple[list[StoredPartition], list[StoredOffset]]:
    """Return all that is committed in a pipeline's topics, and the offsets of its group."""
    with LogReader(pipeline.kafka) as log:
        logs = [
            _read(log, topic, partition)
            for topic in pipeline.topics.all
            for partition in range(pipeline.partitions)
        ]
    return logs, committed(pipeline)


def load(stored: StoredLog, bootstrap: str, folder: Path) -> Pipeline:
    """Write a log into topics that are not there yet, each record at its offset."""
    pipeline = pipeline_of(bootstrap, stored.prefix, folder, stored.partitions)
    pipeline.environment = dict(stored.environment)
    common = {
        "bootstrap.servers": bootstrap,
        "linger.ms": 0,
        "retry.backoff.ms": 5,  # between two transactions
        "message.max.bytes": 10_000_000,
    }
    plain = Producer(common | {"enable.idempotence": True}, logger=LIBRDKAFKA_LOGGER)
    transactional = Producer(common | {"transactional.id": f"{stored.prefix}load"}, logger=LIBRDKAFKA_LOGGER)
    transactional.init_transactions(TIMEOUT)
    consumer = groupless_consumer(pipeline.kafka)
    try:
        for runs in zip_longest(*map(_runs, stored.logs)):
            written = [run for run in runs if run is not None]
            _write(written, plain, transactional)
            for run in written:
                until(partial(_ended, consumer, run), f"the end of {run.topic} at {run.end}")
    finally:
        consumer.close()
    if stored.offsets:
        _commit(pipeline, stored.offsets)
    return pipeline


def committed(pipeline: Pipeline) -> list[StoredOffset]:
    """Return the committed offsets of a pipeline's group."""
    group, client = pipeline.kafka.group, Admin(pipeline.kafka)
    wanted = [
        TopicPartition(topic, number)
        for topic in pipeline.topics.inputs
        for number in range(pipeline.partitions)
    ]
    request = ConsumerGroupTopicPartitions(group, wanted)
    found = client.list_consumer_group_offsets([request])[group].result(TIMEOUT)
    return [
        StoredOffset(each.topic, each.partition, each.offset, each.metadata or "")
        for each in found.topic_partitions
    ]


def inputs_done(pipeline: Pipeline) -> bool:
    """Tell whether the group has committed that all inputs are processed."""
    consumer = groupless_consumer(pipeline.kafka)
    try:
        return all(
            consumer.get_watermark_offsets(TopicPartition(each.topic, each.partition), TIMEOUT)[1]
            == each.offset
            for each in committed(pipeline)
        )
    finally:
        consumer.close()


def digests(pipeline: Pipeline) -> dict[str, str]:
    """Return number and SHA-256 of all outputs by topic, without what depends on the time of writing.

    Dead letters are sorted: which of the two inputs a record that nothing can be done with is read from first
    depends on when it arrives.
    """
    topics = pipeline.topics
    found = {}
    for topic in (topics.predictions, topics.outcomes, topics.label_requests, topics.dead_letters):
        records = [(each.partition, each.key, each.value, each.headers) for each in pipeline.read(topic)]
        views = [repr(record).encode() for record in records]
        if topic == topics.dead_letters:
            views.sort()
        found[topic] = f"{len(views)} {hashlib.sha256(b''.join(views)).hexdigest()}"
    return found


def _commit(pipeline: Pipeline, offsets: Sequence[StoredOffset]) -> None:
    client = {"bootstrap.servers": pipeline.kafka.bootstrap, "group.id": pipeline.kafka.group}
    consumer = Consumer(client, logger=LIBRDKAFKA_LOGGER)
    try:
        wanted = [TopicPartition(each.topic, each.partition, each.offset, each.metadata) for each in offsets]
        for each in consumer.commit(offsets=wanted, asynchronous=False) or ():
            assert each.error is None, each.error
    finally:
        consumer.close()


def _read(log: LogReader, topic: str, partition: int) -> StoredPartition:
    records = []
    for message in log.read_to_end(topic, partition):
        given = cast(list[tuple[str, bytes | None]], message.headers() or [])
        headers = [StoredHeader(name, value) for name, value in given]
        offset, timestamp = message.offset() or 0, message.timestamp()[1]
        records.append(StoredRecord(offset, message.key(), message.value(), timestamp, headers))
    return StoredPartition(topic, partition, records, log.end)


class _Run(NamedTuple):
    """Records of a partition at consecutive offsets."""

    topic: str
    partition: int
    records: list[StoredRecord]
    gap: int
    """Offsets after them that have no committed record."""
    end: int
    """The offset after the gap."""


def _ended(consumer: Consumer, run: _Run) -> bool:
    """Tell whether a run and its gap are written: markers come some time after their transaction's end."""
    _, end = consumer.get_watermark_offsets(TopicPartition(run.topic, run.partition), TIMEOUT)
    return end == run.end


def _write(given: Sequence[_Run], plain: Producer, transactional: Producer) -> None:
    """Write a run of each partition, and the gap after it.

    The marker of a transaction takes one offset. A longer gap is made of an aborted transaction.
    """
    transactional.begin_transaction()
    for run in given:
        if run.gap == 1:
            _produce(transactional, run)
    transactional.commit_transaction(TIMEOUT)
    for run in given:
        if run.gap != 1:
            _produce(plain, run)
    assert plain.flush(TIMEOUT) == 0
    if longer := [run for run in given if run.gap > 1]:
        transactional.begin_transaction()
        for run in longer:
            for _ in range(run.gap - 1):
                transactional.produce(run.topic, FILLER, partition=run.partition)
        assert transactional.flush(TIMEOUT) == 0  # what is not sent is not aborted either
        transactional.abort_transaction(TIMEOUT)


def _produce(producer: Producer, run: _Run) -> None:
    for record in run.records:
        headers: list[tuple[str, str | bytes | None]] = [(each.name, each.value) for each in record.headers]
        where = run.topic, record.value, record.key, run.partition
        producer.produce(*where, timestamp=record.timestamp, headers=headers)


def _runs(log: StoredPartition) -> Iterator[_Run]:
    """Yield the records of a partition in runs."""
    records: list[StoredRecord] = []
    end = 0
    for record in log.records:
        if record.offset > end:
            yield _Run(log.topic, log.partition, records, record.offset - end, record.offset)
            records = []
        records.append(record)
        end = record.offset + 1
    if log.end:
        yield _Run(log.topic, log.partition, records, log.end - end, log.end)
