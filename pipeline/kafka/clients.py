"""Kafka clients with the settings that this pipeline needs."""

from __future__ import annotations

import logging
import time
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaError, Producer

from pipeline.config.tree import Config, Kafka, Worker
from pipeline.kafka.errors import error_text as error_text  # noqa: PLC0414 - exported
from pipeline.kafka.errors import is_fenced as is_fenced  # noqa: PLC0414 - exported

LIBRDKAFKA_LOGGER = logging.getLogger("librdkafka")
"""Where librdkafka's own log lines go: one for every attempt to connect, so only when asked for."""
LIBRDKAFKA_LOGGER.setLevel(logging.CRITICAL)

REPEAT_INTERVAL = 10.0
"""Seconds for which the same trouble is not said again."""

_log = structlog.get_logger()
_last_logged: dict[str, float] = {}


def client_settings(kafka: Kafka) -> dict[str, Any]:
    """Settings of every client."""
    return {
        "bootstrap.servers": kafka.bootstrap,
        "reconnect.backoff.ms": 20,  # half of it is also what a client may wait before it connects at all
        **kafka.client,
    }


def log_client_error(error: KafkaError) -> None:
    """Log a trouble that the client goes on to cope with, such as a broker that is away."""
    now = time.monotonic()
    if now - _last_logged.get(error.name(), -REPEAT_INTERVAL) >= REPEAT_INTERVAL:
        _last_logged[error.name()] = now
        _log.warning("kafka", trouble=error.name(), text=error.str())


def heartbeat_interval(worker: Worker) -> int:
    """Milliseconds between two signs of life to the group, whose answers tell what has become of it."""
    return max(1_000, worker.session_timeout // 5)


def group_consumer(config: Config) -> Consumer:
    """The consumer of the group: offsets are committed by transactions only.

    A rebalance waits for members that are silent for as long as these may be between two polls. A worker
    polls after each transaction and between two slices of a restore; the longest is a transaction whose
    every step takes all of its time, four of them, and then it is thrown away.
    """
    settings = client_settings(config.kafka) | {
        "error_cb": log_client_error,
        "group.id": config.kafka.group,
        "session.timeout.ms": config.worker.session_timeout,
        "heartbeat.interval.ms": heartbeat_interval(config.worker),
        "max.poll.interval.ms": max(
            60_000, 6 * config.worker.transaction_timeout, config.worker.session_timeout
        ),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "partition.assignment.strategy": "range",
        "enable.partition.eof": True,
        "fetch.queue.backoff.ms": 10,
        "fetch.wait.max.ms": 100,
        # Of what may be read ahead, the inlets have half. This one queue of all partitions goes beyond its
        # limit by what a fetch brings.
        "queued.max.messages.kbytes": config.worker.buffer // 4 // 1024,
        "fetch.max.bytes": config.worker.buffer // 4,
    }
    if config.kafka.instance:
        settings["group.instance.id"] = config.kafka.instance
    return Consumer(settings, logger=LIBRDKAFKA_LOGGER)


def groupless_consumer(kafka: Kafka, fetch_max_wait_ms: int = 100) -> Consumer:
    """A consumer outside any group, that reads what is committed and tells where the end is.

    At the end, brokers keep it waiting for `fetch_max_wait_ms` milliseconds: so late it hears that it is
    there, or goes to another partition.
    """
    return Consumer(
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
        },
        logger=LIBRDKAFKA_LOGGER,
    )


def transactional_producer(config: Config, instance: str, largest_message: int) -> Producer:
    """The producer of a worker; its name makes sure that an older one with it can do nothing more."""
    return Producer(
        client_settings(config.kafka)
        | {
            "error_cb": log_client_error,
            "transactional.id": f"{config.kafka.prefix}{config.kafka.group}-{instance}",
            "transaction.timeout.ms": config.worker.transaction_timeout,
            "linger.ms": 5,
            "compression.type": "lz4",
            "retry.backoff.ms": 5,
            "queue.buffering.max.messages": 2_000_000,
            "message.max.bytes": largest_message,
        },
        logger=LIBRDKAFKA_LOGGER,
    )
