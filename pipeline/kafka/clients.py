"""Make Kafka clients with the settings that this pipeline needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from pipeline.config.settings import Kafka, Worker
from pipeline.kafka.access.authorization import needing
from pipeline.kafka.access.errors import is_partition_end
from pipeline.kafka.access.new_client import client_settings, new_client
from pipeline.kafka.access.rights import Resource, transactional_id

REPEAT_INTERVAL = 10.0
"""Seconds for which the same error is not logged again."""
REFUSAL_INTERVAL = 1.0
"""Seconds for which a refused password is not logged again."""

METADATA_REFRESH_MS = 1_000
"""How often a worker's producer asks for leaders. It forgets what is three times as old."""

GROUP_METADATA_REFRESH_MS = 10_000
"""How often a worker's consumer asks how many partitions its inputs have."""

LINGER_MS = 1_000
"""How long records wait for a batch to fill: a flush ends it."""
DEFAULT_BATCH = 1_000_000
"""Bytes of a batch, at most, by librdkafka's default."""
DEFAULT_PREFETCH = 2**26
"""Bytes that a consumer reads ahead, by librdkafka's default."""

_log = structlog.get_logger()
_last_logged: dict[str, float] = {}


def log_client_error(error: KafkaError) -> None:
    """Log an error that the client recovers from by itself, such as a broker that is away.

    Somebody has to act on a refused password, so it is logged as long as it is refused.
    """
    if error.fatal():  # not one of these: the next call of the client raises it
        return
    now = time.monotonic()
    interval = REFUSAL_INTERVAL if error.code() == KafkaError._AUTHENTICATION else REPEAT_INTERVAL
    if now - _last_logged.get(error.name(), -interval) >= interval:
        _last_logged[error.name()] = now
        _log.warning("kafka", trouble=error.name(), text=error.str())


def heartbeat_interval(worker: Worker) -> int:
    """Return the milliseconds between two heartbeats, whose answers tell a member of rebalances."""
    return max(1_000, worker.session_timeout // 10)


Statistics: TypeAlias = Callable[[str], None]
"""Is given the client's statistics, as JSON."""
STATISTICS_INTERVAL_MS = 5_000
"""Milliseconds between two statistics of a client."""


def _statistics_settings(statistics: Statistics | None) -> dict[str, Any]:
    if statistics is None:
        return {}
    return {"stats_cb": statistics, "statistics.interval.ms": STATISTICS_INTERVAL_MS}


def group_consumer(kafka: Kafka, worker: Worker, statistics: Statistics | None = None) -> Consumer:
    """Make a consumer of the group; it commits nothing, because transactions commit the offsets.

    A rebalance waits for silent members as long as `max.poll.interval.ms` allows. A worker polls after each
    transaction and between two slices of a restore. The longest time between two polls is that of a snapshot
    and of a transaction that both take their whole timeout; after that the consumer is closed.

    Parameters
    ----------
    kafka
        Where the group is.
    worker
        Its timeouts and its buffer.
    statistics
        Is given the client's statistics in each poll in which there are new ones; None for none.
    """
    settings = client_settings(kafka) | {
        "error_cb": log_client_error,
        "group.id": kafka.group,
        "session.timeout.ms": worker.session_timeout,
        "heartbeat.interval.ms": heartbeat_interval(worker),
        "max.poll.interval.ms": max(60_000, 4 * worker.transaction_timeout, worker.session_timeout),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "partition.assignment.strategy": "range",
        "enable.partition.eof": True,
        "fetch.queue.backoff.ms": 10,
        "fetch.wait.max.ms": 100,
        # Half of the buffer is for the record queues. This one queue of all partitions exceeds its limit by
        # up to one fetch.
        "queued.max.messages.kbytes": worker.buffer // 4 // 1024,
        "fetch.max.bytes": worker.buffer // 4,
        # By default, partitions that are added to an input are noticed five minutes later.
        "topic.metadata.refresh.interval.ms": GROUP_METADATA_REFRESH_MS,
        **_statistics_settings(statistics),
    }
    if kafka.instance:
        settings["group.instance.id"] = kafka.instance
    return new_client(Consumer, settings)


def groupless_consumer(
    kafka: Kafka, fetch_max_wait_ms: int = 100, prefetch: int = DEFAULT_PREFETCH
) -> Consumer:
    """Make a consumer outside any group that reads committed records and reports the ends of partitions.

    Parameters
    ----------
    kafka
        Where to read.
    fetch_max_wait_ms
        Milliseconds for which a broker holds a fetch at the end of a partition. So much later the consumer
        reports the end, or reads another partition.
    prefetch
        Bytes that the client reads ahead, about: it exceeds them by up to one fetch.

    Returns
    -------
    Consumer
        A consumer with no assignment yet.
    """
    return new_client(
        Consumer,
        client_settings(kafka)
        | {
            "error_cb": log_client_error,
            "group.id": f"{kafka.group}-reader",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 10,
            "fetch.wait.max.ms": fetch_max_wait_ms,
            "queued.max.messages.kbytes": prefetch // 1024,
        },
    )


def raise_unless_retriable(message: Message, kafka: Kafka) -> None:
    """Raise the error that a consumer outside any group has returned in place of a message.

    Parameters
    ----------
    message
        The message with an error.
    kafka
        Where it was read.

    Raises
    ------
    KafkaException
        The error is neither the end of a partition nor one that the client retries.
    AuthorizationError
        The brokers do not let this client read the topic.
    """
    error = message.error()
    # The client asks for the coordinator of its group's name, which it needs for nothing.
    if error is None or is_partition_end(error) or error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return
    with needing(kafka, "Read", Resource.TOPIC, message.topic() or ""):
        if not error.retriable():
            raise KafkaException(error)


def transactional_producer(
    kafka: Kafka,
    worker: Worker,
    instance: str,
    largest_message: int,
    statistics: Statistics | None = None,
    *,
    batch_bytes: int = DEFAULT_BATCH,
) -> Producer:
    """Make a worker's producer; it fences older producers with the same instance name.

    librdkafka remembers a group's coordinator for as long as it remembers metadata, 15 minutes by default. If
    that broker is dead, `send_offsets_to_transaction` waits for it, and never asks who took over.

    librdkafka has one batch of a partition under way at a time, and polls without a pause while another one
    waits for it. On a busy processor, that keeps the broker or the worker from working. So what is written
    waits for a whole batch, or for the flush that ends a transaction.

    Parameters
    ----------
    kafka
        Where the group is.
    worker
        Its timeouts and its buffer.
    instance
        The worker's name.
    largest_message
        Bytes of the largest message, as it is compressed.
    statistics
        Is given the client's statistics in each flush in which there are new ones; None for none.
    batch_bytes
        Bytes of a batch, at most, before it is compressed.
    """
    return new_client(
        Producer,
        client_settings(kafka)
        | {
            "error_cb": log_client_error,
            "transactional.id": transactional_id(kafka, instance),
            "transaction.timeout.ms": worker.transaction_timeout,
            "linger.ms": LINGER_MS,
            "batch.size": batch_bytes,
            "compression.type": "lz4",
            "retry.backoff.ms": 5,
            "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
            "metadata.max.age.ms": 3 * METADATA_REFRESH_MS,
            "queue.buffering.max.messages": 2_000_000,
            "message.max.bytes": largest_message,
            **_statistics_settings(statistics),
        },
    )
