"""Retry requests that a broker cannot answer yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Final, TypeVar

from confluent_kafka import KafkaException

BROKER_TIMEOUT: Final = 10.0
"""Seconds for a broker to answer, and for a partition to have a leader."""
COORDINATOR_TIMEOUT: Final = 30.0
"""Seconds for a group's or a transaction's coordinator to answer."""
RETRY_BACKOFF: Final = 0.1
"""Seconds between two attempts."""

Answer = TypeVar("Answer")


def retry(
    request: Callable[[], Answer],
    retriable: Collection[int],
    timeout: float,
    refresh: Callable[[], object] = lambda: None,
) -> Answer:
    """Repeat a request while it fails with one of some codes.

    Parameters
    ----------
    request
        Makes the request.
    retriable
        Codes after which it is made again.
    timeout
        Seconds after which a failure is final.
    refresh
        Called before each new attempt.

    Returns
    -------
    Answer
        The request's answer.

    Raises
    ------
    KafkaException
        The request fails with another code, or fails still when the time is over.
    """
    end = time.monotonic() + timeout
    while True:
        try:
            return request()
        except KafkaException as error:
            if error.args[0].code() not in retriable or time.monotonic() > end:
                raise
        time.sleep(RETRY_BACKOFF)
        refresh()
