"""A producer that appends all records in the order in which it gets them, or fails."""

from __future__ import annotations

import time

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pipeline.config.settings import Kafka
from pipeline.errors import BrokerError
from pipeline.kafka.access.authorization import AUTHORIZATION_ERRORS, needing
from pipeline.kafka.access.errors import error_text
from pipeline.kafka.access.new_client import client_settings, new_client
from pipeline.kafka.access.rights import Resource

REPORT_INTERVAL = 10.0
"""Seconds without any acknowledgement after which that is logged, and logged again."""

_log = structlog.get_logger()


class Sender:
    """Sends records with their event time, and never skips one.

    librdkafka drops single records after their timeout and goes on with the next ones, which would leave
    gaps. So records do not expire here. Instead this class fails as a whole when nothing has been
    acknowledged for some time.

    Parameters
    ----------
    kafka
        Address of Kafka.
    ack_timeout
        Seconds without any acknowledgement after which the sender fails.
    advice
        What to do once the broker works again.
    """

    def __init__(
        self, kafka: Kafka, ack_timeout: float, advice: str = "--resume continues from there"
    ) -> None:
        self.sent = 0
        """Records handed to librdkafka so far."""
        self.acknowledged = 0
        """Records that Kafka has acknowledged."""
        self._kafka = kafka
        self._advice = advice
        self._ack_timeout = ack_timeout
        self._seconds_without_ack = 0.0
        self._last_poll = time.monotonic()
        self._next_report = REPORT_INTERVAL
        self._undelivered: tuple[KafkaError, str] | None = None
        """The first delivery error, and the topic of its record."""
        self._client_error = ""
        self._producer = new_client(
            Producer,
            client_settings(kafka)
            | {
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "enable.gapless.guarantee": True,
                "log_level": 2,  # errors come through the callbacks
                "message.timeout.ms": 0,
                "compression.type": "lz4",
                "linger.ms": 5,
                "delivery.report.only.error": True,
                "on_delivery": self._on_delivery,
                "error_cb": self._on_error,
            },
        )

    def send(self, topic: str, key: bytes, value: bytes, timestamp: int) -> None:
        """Append a record to the partition of its key.

        Parameters
        ----------
        topic
            Name of the topic.
        key
            Key of the record.
        value
            Value of the record.
        timestamp
            Time of the event, in milliseconds since 1970.

        Raises
        ------
        BrokerError
            The broker refuses records, or acknowledges none for `ack_timeout` seconds.
        """
        while True:
            try:
                self._producer.produce(topic, value, key, timestamp=timestamp)
            except BufferError:
                self.poll(0.1)
            except KafkaException as error:
                self.poll(1.0)  # raises with the reason, if this error lacks it
                raise self._failure(error_text(error)) from error
            else:
                self.sent += 1
                return

    def poll(self, seconds: float = 0.0) -> None:
        """Process delivery reports.

        Parameters
        ----------
        seconds
            The longest time to wait for one.

        Raises
        ------
        BrokerError
            As for `send`.
        """
        try:
            self._producer.poll(seconds)
        except KafkaException as error:
            raise self._failure(error_text(error)) from error
        if self._undelivered is not None:
            reason, topic = self._undelivered
            with needing(self._kafka, "Write", Resource.TOPIC, topic):
                if reason.code() in AUTHORIZATION_ERRORS:
                    raise KafkaException(reason)
            raise self._failure(f"{reason.name()}: {reason.str()}")
        now = time.monotonic()
        waiting = len(self._producer)
        if waiting == 0 or self.sent - waiting > self.acknowledged:
            self.acknowledged = self.sent - waiting
            self._seconds_without_ack = 0.0
        else:
            # At most one second is counted per step: this process itself may have been stopped in between.
            self._seconds_without_ack += min(now - self._last_poll, 1.0)
        self._last_poll = now
        self._report_waiting()
        if self._seconds_without_ack > self._ack_timeout:
            trouble = f" ({self._client_error})" if self._client_error else ""
            raise self._failure(f"nothing was acknowledged for {self._ack_timeout:.0f} s{trouble}")

    def flush(self) -> None:
        """Wait until every record is acknowledged.

        Raises
        ------
        BrokerError
            As for `send`.
        """
        self.poll()
        while self.acknowledged < self.sent:
            self.poll(0.1)

    def _report_waiting(self) -> None:
        """Log every ten seconds that nothing is acknowledged."""
        if self._seconds_without_ack == 0.0:
            self._next_report = REPORT_INTERVAL
        if self._seconds_without_ack < self._next_report:
            return
        self._next_report += REPORT_INTERVAL
        _log.warning(
            "Kafka acknowledges nothing; waiting",
            seconds=round(self._seconds_without_ack),
            patience_s=round(self._ack_timeout),
            trouble=self._client_error or None,
        )

    def _failure(self, what: str) -> BrokerError:
        self._producer.purge()
        return BrokerError(
            f"Kafka at {self._kafka.bootstrap}: {what}. {self.acknowledged:,} of {self.sent:,} records are "
            f"acknowledged. Once the broker works again (see its log), {self._advice}"
        )

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if self._undelivered is None and error is not None:
            self._undelivered = error, message.topic() or ""

    def _on_error(self, error: KafkaError) -> None:
        self._client_error = f"{error.name()}: {error.str()}"
