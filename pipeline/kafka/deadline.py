"""A limit on calls that have none of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from confluent_kafka import KafkaError, KafkaException

Result = TypeVar("Result")


class BackgroundCall(Generic[Result]):
    """A call in a thread of its own, for which nobody waits longer than they want.

    librdkafka's `send_offsets_to_transaction` does not heed its timeout while the group's coordinator is
    away, and may then wait for ever, also when it is back (librdkafka issues 5456 and 5511). Whoever
    gives up on it leaves the client, and the thread that waits in it, to their fate.

    Parameters
    ----------
    call
        Begins at once.
    """

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call = call
        self._results: list[Result] = []
        self._failures: list[Exception] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results.append(self._call())
        except Exception as error:
            self._failures.append(error)

    @property
    def done(self) -> bool:
        """Whether the call has ended."""
        return not self._thread.is_alive()

    def result(self, seconds: float) -> Result:
        """What came of the call.

        Raises
        ------
        Exception
            The call's own.
        KafkaException
            `_TIMED_OUT`, if it does not end within so many seconds.
        """
        self._thread.join(seconds)
        if self._failures:
            raise self._failures[0]
        if not self._results:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer within {seconds:g} s"))
        return self._results[0]
