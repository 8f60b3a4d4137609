"""Write logs in one open transaction, which readers of committed records see once it is committed."""

from __future__ import annotations

from typing import Final, Self

from confluent_kafka import Producer

from pipeline.config.settings import Kafka
from pipeline.kafka.access.new_client import LIBRDKAFKA_LOGGER, client_settings
from pipeline.sources.kuairec import Events
from pipeline.sources.replay import Replay

TRANSACTION_TIMEOUT: Final = 600
"""Seconds for which the transaction may stay open."""
POLL_EVERY: Final = 2_000
"""Records between two polls of the client."""


class OpenTransaction:
    """Interactions and labels that readers of committed records find all at once.

    Parameters
    ----------
    events
        What is written.
    kafka
        Where to, and the prefix of the topics.
    """

    def __init__(self, events: Events, kafka: Kafka) -> None:
        self._records = Replay(events, kafka).records()
        self._producer = Producer(
            client_settings(kafka)
            | {
                "transactional.id": f"{kafka.prefix}bench-input",
                "transaction.timeout.ms": 1_000 * TRANSACTION_TIMEOUT,
                "partitioner": "murmur2_random",
                "compression.type": "lz4",
                "linger.ms": 5,
                "queue.buffering.max.messages": 2_000_000,
            },
            logger=LIBRDKAFKA_LOGGER,
        )

    def write(self) -> Self:
        """Write everything."""
        self._producer.init_transactions()
        self._producer.begin_transaction()
        for number, (timestamp, topic, key, value) in enumerate(self._records):
            self._producer.produce(topic, value, key, timestamp=timestamp)
            if number % POLL_EVERY == 0:
                self._producer.poll(0)
        self._producer.flush()
        return self

    def commit(self) -> None:
        """Commit the transaction: readers of committed records find all of it."""
        self._producer.commit_transaction()
