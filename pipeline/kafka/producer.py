"""Write with a producer: delivery reports, flushes, and the end of a transaction."""

from __future__ import annotations

import time
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pipeline.kafka.access.errors import COORDINATOR_TIMEOUT, timed_out

FLUSH_INTERVAL: Final = 1.0
"""Seconds after which a flush looks whether it waits in vain."""


class DeliveryReport:
    """Learns at which offset a message was written."""

    def __init__(self) -> None:
        self._offset: int | None = None
        self._error: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Take the delivery report."""
        self._error = error
        if error is None:
            self._offset = message.offset()

    @property
    def offset(self) -> int:
        """The offset, once the producer was flushed."""
        if self._error is not None:
            raise KafkaException(self._error)
        assert self._offset is not None, "the producer was not flushed"
        return self._offset


def flush(producer: Producer, timeout: float) -> None:
    """Wait until all that was produced is written.

    Parameters
    ----------
    producer
        Transactional, with a transaction under way.
    timeout
        Seconds to wait.

    Raises
    ------
    KafkaException
        A record was not acknowledged in time, or was refused, or the producer can do nothing more.
    """
    end, left = time.monotonic() + timeout, timeout
    while _flush(producer, min(FLUSH_INTERVAL, left), timeout):
        _raise_if_to_be_aborted(producer)
        if (left := end - time.monotonic()) <= 0:
            raise timed_out("records were not acknowledged in time")


def _flush(producer: Producer, seconds: float, timeout: float) -> int:
    """Write for some seconds, and return how many records are left; a lost error is found by the timeout."""
    try:
        return producer.flush(seconds)
    except SystemError as error:
        # An error that a callback raised, a fatal one for instance, is the cause, or is lost on its way.
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        producer.abort_transaction(timeout)  # after a fatal error this raises it
        raise KafkaException(KafkaError(KafkaError._FAIL, f"the client gave up a flush: {error}")) from error


def _raise_if_to_be_aborted(producer: Producer) -> None:
    """Raise the error for which a transaction has to be aborted, if there is one.

    librdkafka keeps the other records then until it is, so that a flush would wait for them in vain.
    """
    try:
        producer.begin_transaction()  # which never begins one, as one is under way
    except KafkaException as error:
        if error.args[0].txn_requires_abort():
            raise


def abort_if_required(producer: Producer, error: KafkaException) -> None:
    """Abort the transaction after an error that leaves it open, so that readers need not await its timeout.

    Parameters
    ----------
    producer
        The producer of the transaction.
    error
        What a step of the transaction raised.

    Raises
    ------
    KafkaException
        The transaction cannot be aborted.
    """
    if error.args[0].txn_requires_abort():
        producer.abort_transaction(COORDINATOR_TIMEOUT)
