"""Outlast brokers that are away: what a command does where a worker starts over from the log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

import structlog
from confluent_kafka import KafkaException

from pipeline.config.settings import Kafka
from pipeline.errors import BrokerError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.errors import CONNECTION_ERRORS, error_text

MAX_BACKOFF: Final = 10.0
"""Seconds between two attempts, at most; also between two sessions of a worker."""

Answer = TypeVar("Answer")
_log = structlog.get_logger()


def await_broker(kafka: Kafka, error: KafkaException) -> None:
    """Wait until a broker answers, and say so in the log. Ctrl-C ends it.

    Parameters
    ----------
    kafka
        Where the brokers are.
    error
        What has failed.

    Raises
    ------
    KafkaException
        The error, if it is another one than that no broker answers.
    """
    if error.args[0].code() not in CONNECTION_ERRORS:
        raise error
    wait, reason = 1.0, error_text(error)
    while True:
        _log.warning("waiting for a broker", bootstrap=kafka.bootstrap, reason=reason, wait_s=wait)
        time.sleep(wait)
        try:
            Admin(kafka)
        except BrokerError as away:
            wait, reason = min(2 * wait, MAX_BACKOFF), str(away)
        else:
            _log.info("a broker answers: going on", bootstrap=kafka.bootstrap)
            return


def outlast(
    kafka: Kafka, request: Callable[[], Answer], reconnect: Callable[[], object] = lambda: None
) -> Answer:
    """Make a request until it is answered, however long no broker answers.

    Parameters
    ----------
    kafka
        Where the brokers are.
    request
        Makes the request, which changes nothing.
    reconnect
        Makes the client anew, which may never find the brokers again: see `pipeline.kafka.liveness`.

    Returns
    -------
    Answer
        The answer.

    Raises
    ------
    KafkaException
        It fails for another reason than that no broker answers.
    """
    while True:
        try:
            return request()
        except KafkaException as error:
            await_broker(kafka, error)
            reconnect()
