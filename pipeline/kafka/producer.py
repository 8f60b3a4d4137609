"""Write with a producer: delivery reports, flushes, and the end of a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pipeline.kafka.errors import timed_out
from pipeline.kafka.retries import COORDINATOR_TIMEOUT


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
        A record was not acknowledged in time, or the producer can do nothing more.
    """
    try:
        left = producer.flush(timeout)
    except SystemError as error:
        # An error that a callback raised, a fatal one for instance, is the cause, or is lost on its way.
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        producer.abort_transaction(timeout)  # after a fatal error this raises it
        raise KafkaException(KafkaError(KafkaError._FAIL, f"the client gave up a flush: {error}")) from error
    if left:
        raise timed_out("records were not acknowledged in time")


@contextmanager
def abort_on_failure(producer: Producer) -> Iterator[None]:
    """Abort the transaction when a step of it fails, so that readers need not wait for its timeout.

    Raises
    ------
    KafkaException
        The error of the step.
    """
    try:
        yield
    except KafkaException as error:
        if error.args[0].txn_requires_abort():
            producer.abort_transaction(COORDINATOR_TIMEOUT)
        raise
