"""Set a deadline on calls that have none of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

import structlog
from confluent_kafka import KafkaError, KafkaException

from pipeline.kafka.access.errors import timed_out

Result = TypeVar("Result")

STOP_INTERVAL: Final = 0.2
"""Seconds after which a waiting call looks whether to stop."""
CLOSE_TIMEOUT: Final = 30.0
"""Seconds for which a consumer that is closed is waited for."""

_log = structlog.get_logger()


class BackgroundCall(Generic[Result]):
    """Runs a call in a thread of its own, so that the caller can stop waiting for it.

    librdkafka's `send_offsets_to_transaction` ignores its timeout while the group's coordinator is away, and
    may then wait for ever, even after the coordinator is back (librdkafka issues 5456 and 5511). After a
    timeout the thread goes on in the background, and its client must not be used any more.

    Parameters
    ----------
    call
        The call; it begins at once.
    """

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call = call
        self._results: list[Result] = []
        self._failures: list[Exception] = []
        self._begin = time.monotonic()
        self._seconds: float | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results.append(self._call())
        except Exception as error:
            self._failures.append(error)
        finally:
            self._seconds = time.monotonic() - self._begin

    @property
    def done(self) -> bool:
        """Whether the call has ended."""
        return not self._thread.is_alive()

    @property
    def seconds(self) -> float | None:
        """How long the call took; None until it has ended."""
        return self._seconds

    def result(self, seconds: float, stopping: Callable[[], bool] = lambda: False) -> Result:
        """Wait for the call and return its result.

        Parameters
        ----------
        seconds
            The longest time to wait.
        stopping
            Ends the wait once it is true.

        Returns
        -------
        Result
            What the call returned.

        Raises
        ------
        Exception
            The call's own.
        KafkaException
            With code `_TIMED_OUT`: the call has not ended in time.
        """
        end = time.monotonic() + seconds
        while not self.done and time.monotonic() < end and not stopping():
            self._thread.join(min(STOP_INTERVAL, max(0.0, end - time.monotonic())))
        if self._failures:
            raise self._failures[0]
        if not self._results:
            why = "stopped before the answer" if stopping() else f"no answer within {seconds:g} s"
            raise timed_out(why)
        return self._results[0]


class Closeable(Protocol):
    """A client that can be closed."""

    def close(self) -> None: ...


def close_consumer(consumer: Closeable, seconds: float = CLOSE_TIMEOUT) -> None:
    """Close a consumer, and wait for that no longer than ``seconds``.

    librdkafka's close can wait for ever where brokers went away meanwhile (confluent-kafka-python issue
    1667). The consumer is then left to its thread, and the group drops it after its session timeout.
    """
    try:
        BackgroundCall(consumer.close).result(seconds)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._TIMED_OUT:
            raise
        _log.warning("a consumer did not close in time: its group drops it later", seconds=seconds)
