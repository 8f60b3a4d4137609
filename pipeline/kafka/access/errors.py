"""Tell errors of the client apart, and retry those that pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

FENCED_ERRORS: Final = frozenset(
    {
        KafkaError._FATAL,  # what librdkafka reports in place of the true code after the first call
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.FENCED_INSTANCE_ID,
    }
)
"""Codes that say that another client has the name of this one."""

COORDINATOR_ERRORS: Final = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
"""Codes of a group that has no coordinator yet, or gets another one: retry."""

LEADER_ERRORS: Final = frozenset(
    {
        KafkaError._NOENT,  # no leader is known
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
"""Codes of a partition that has no leader yet, or gets another one: retry."""

MEMBERSHIP_ERRORS: Final = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.UNKNOWN_MEMBER_ID,
    }
)
"""Codes with which a coordinator refuses the offsets of a group whose members have changed."""

CONNECTION_ERRORS: Final = frozenset(
    {KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN}
)
"""Codes of a broker that does not answer."""


ERROR_CLASSES: Final[Mapping[str, Collection[int]]] = MappingProxyType(
    {
        "fenced": FENCED_ERRORS,
        "membership": MEMBERSHIP_ERRORS,
        "coordinator": COORDINATOR_ERRORS,
        "leader": LEADER_ERRORS,
        "connection": CONNECTION_ERRORS,
        "too_large": {KafkaError.MSG_SIZE_TOO_LARGE},
    }
)
"""Codes by the kind of error, see `error_class`."""


def error_text(error: KafkaException) -> str:
    """Return the error's name and text."""
    return f"{error.args[0].name()}: {error.args[0].str()}"


def is_fenced(error: KafkaException) -> bool:
    """Return whether another client has the name of this one, which can do nothing more."""
    return error.args[0].code() in FENCED_ERRORS


def is_membership_change(error: KafkaException) -> bool:
    """Return whether offsets were refused because the group's members have changed."""
    return error.args[0].code() in MEMBERSHIP_ERRORS


def error_class(error: KafkaException) -> str:
    """Return one of a few names for what kind of error it is.

    Examples
    --------
    >>> error_class(timed_out("no answer"))
    'timeout'
    """
    code = error.args[0].code()
    if code == KafkaError._TIMED_OUT:
        return "timeout"
    return next((name for name, codes in ERROR_CLASSES.items() if code in codes), "other")


def is_too_large(error: KafkaException) -> bool:
    """Return whether a record is larger than its topic, or the client, takes."""
    return error_class(error) == "too_large"


def is_partition_end(error: KafkaError) -> bool:
    """Return whether an error is librdkafka's event for the end of a partition.

    The position cannot tell: the markers of transactions at the end of a log keep it below the high
    watermark for ever.
    """
    return error.code() == KafkaError._PARTITION_EOF


def is_offset_lost(error: KafkaError) -> bool:
    """Return whether the messages from the wanted offset on were deleted (`auto.offset.reset` is `error`)."""
    return error.code() == KafkaError._AUTO_OFFSET_RESET


def timed_out(text: str) -> KafkaException:
    """Make the error of a step that took too long."""
    return KafkaException(KafkaError(KafkaError._TIMED_OUT, text))


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
