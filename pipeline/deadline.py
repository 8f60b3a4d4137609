"""A limit on calls that have none of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, KafkaException


def within(seconds: float, call: Callable[..., Any], *arguments: Any) -> None:
    """Call, but wait for the end no longer than this.

    librdkafka's `send_offsets_to_transaction` does not heed its timeout while the group's coordinator is
    away, and may then wait for ever, also when it is back (librdkafka issues 5456 and 5511). Whoever
    gives up on it leaves the client, and the thread that waits in it, to their fate.

    Raises
    ------
    KafkaException
        The call's own, or `_TIMED_OUT`.
    """
    failures: list[KafkaException] = []

    def run() -> None:
        try:
            call(*arguments)
        except KafkaException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer within {seconds:g} s"))
    if failures:
        raise failures[0]
