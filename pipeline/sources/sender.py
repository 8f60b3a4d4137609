"""A producer that appends records in the order in which it gets them, all of them, or fails."""

from __future__ import annotations

import time

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pipeline.config.tree import Kafka
from pipeline.errors import BrokerError
from pipeline.kafka.clients import QUIET, common, explain


class Sender:
    """Sends records with their event time; never skips one.

    librdkafka gives up single records when their time is over, and then goes on with those after them.
    That would leave gaps. So records do not expire here; it is this class that gives up, as a whole, when
    nothing has been acknowledged for a while.

    Parameters
    ----------
    kafka
        Where to send to.
    patience
        Seconds without any acknowledgement after which it fails.
    """

    def __init__(self, kafka: Kafka, patience: float) -> None:
        self.sent = 0
        """Records handed over so far."""
        self.acknowledged = 0
        """Records that are in the topics for sure."""
        self._kafka = kafka
        self._patience = patience
        self._silence = 0.0
        self._served = time.monotonic()
        self._refusal: KafkaError | None = None
        self._trouble = ""
        self._producer = Producer(
            common(kafka)
            | {
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "enable.gapless.guarantee": True,
                "log_level": 2,  # what goes wrong is told by the callbacks
                "message.timeout.ms": 0,
                "compression.type": "lz4",
                "linger.ms": 5,
                "delivery.report.only.error": True,
                "on_delivery": self._on_refusal,
                "error_cb": self._on_trouble,
            },
            logger=QUIET,
        )

    def send(self, topic: str, key: bytes, value: bytes, timestamp: int) -> None:
        """Append a record to the partition of its key; `timestamp` is in milliseconds.

        Raises
        ------
        BrokerError
            The broker refuses records, or acknowledges none for too long.
        """
        while True:
            try:
                self._producer.produce(topic, value, key, timestamp=timestamp)
            except BufferError:
                self.serve(0.1)
            except KafkaException as error:
                self.serve(1.0)  # which raises with the reason, if this one only says that there was one
                raise self._failure(explain(error)) from error
            else:
                self.sent += 1
                return

    def serve(self, seconds: float = 0.0) -> None:
        """Take note of what has become of the records, for so long at most.

        Raises
        ------
        BrokerError
            As for `send`.
        """
        try:
            self._producer.poll(seconds)
        except KafkaException as error:
            raise self._failure(explain(error)) from error
        if self._refusal is not None:
            raise self._failure(f"{self._refusal.name()}: {self._refusal.str()}")
        now = time.monotonic()
        waiting = len(self._producer)
        if waiting == 0 or self.sent - waiting > self.acknowledged:
            self.acknowledged = self.sent - waiting
            self._silence = 0.0
        else:
            # A step is counted in part only: this process itself may have been halted in between.
            self._silence += min(now - self._served, 1.0)
        self._served = now
        if self._silence > self._patience:
            trouble = f" ({self._trouble})" if self._trouble else ""
            raise self._failure(f"nothing was acknowledged for {self._patience:.0f} s{trouble}")

    def flush(self) -> None:
        """Wait until every record is acknowledged.

        Raises
        ------
        BrokerError
            As for `send`.
        """
        self.serve()
        while self.acknowledged < self.sent:
            self.serve(0.1)

    def _failure(self, what: str) -> BrokerError:
        self._producer.purge()
        return BrokerError(
            f"Kafka at {self._kafka.bootstrap}: {what}. {self.acknowledged:,} of {self.sent:,} records are "
            "known to be there. Once the broker is well (its log says more), --resume goes on from there"
        )

    def _on_refusal(self, error: KafkaError | None, _: Message) -> None:
        self._refusal = self._refusal or error

    def _on_trouble(self, error: KafkaError) -> None:
        self._trouble = f"{error.name()}: {error.str()}"
