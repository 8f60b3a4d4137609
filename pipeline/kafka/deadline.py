"""Set a deadline on calls that have none of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from pipeline.kafka.errors import timed_out

Result = TypeVar("Result")


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
        """Wait for the call and return its result.

        Parameters
        ----------
        seconds
            The longest time to wait.

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
        self._thread.join(seconds)
        if self._failures:
            raise self._failures[0]
        if not self._results:
            raise timed_out(f"no answer within {seconds:g} s")
        return self._results[0]
