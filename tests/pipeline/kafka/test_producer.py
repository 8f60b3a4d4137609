from __future__ import annotations

import time
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from pipeline.kafka.producer import FLUSH_INTERVAL, flush


class Flushing:
    """A producer whose `flush` has one outcome, and that forbids to abort after a fatal error."""

    def __init__(
        self,
        outcome: int | Exception,
        fatal: KafkaException | None = None,
        state: KafkaException | None = None,
    ) -> None:
        self._outcome = outcome
        self._fatal = fatal
        self._state = state or KafkaException(KafkaError(KafkaError._STATE, "a transaction is under way"))
        self.calls: list[str] = []

    def begin_transaction(self) -> None:
        raise self._state

    def flush(self, timeout: float) -> int:
        assert timeout <= FLUSH_INTERVAL
        time.sleep(timeout)
        self.calls.append("flush")
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def abort_transaction(self, timeout: float) -> None:
        assert timeout == 2.0
        self.calls.append("abort_transaction")
        if self._fatal is not None:
            raise self._fatal


def flushed(
    outcome: int | Exception, fatal: KafkaException | None = None, state: KafkaException | None = None
) -> list[str]:
    """What was asked of the producer."""
    producer = Flushing(outcome, fatal, state)
    flush(cast(Producer, cast(Any, producer)), 2.0)
    return producer.calls


def caused(cause: Exception) -> SystemError:
    error = SystemError("flush returned a result with an exception set")
    error.__cause__ = cause
    return error


LOST = SystemError("flush returned NULL without setting an exception")
FENCED = KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (3, KafkaError._TIMED_OUT),
        (FENCED, KafkaError._FENCED),
        (caused(FENCED), KafkaError._FENCED),
        (caused(ValueError("else")), KafkaError._FAIL),
        (LOST, KafkaError._FAIL),
    ],
)
def test_whatever_a_flush_comes_to_but_success_is_one_kind_of_error(
    outcome: int | Exception, code: int
) -> None:
    with pytest.raises(KafkaException) as caught:
        flushed(outcome)
    assert caught.value.args[0].code() == code


def test_a_fatal_error_that_got_lost_in_a_flush_is_found_again() -> None:
    with pytest.raises(KafkaException) as caught:
        flushed(LOST, FENCED)
    assert caught.value.args[0].code() == KafkaError._FENCED


def test_a_flush_that_waits_in_vain_ends_with_the_error_for_which_the_transaction_is_to_be_aborted() -> None:
    refused = KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "large", txn_requires_abort=True))
    with pytest.raises(KafkaException) as caught:
        flushed(3, state=refused)
    assert caught.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_a_flush_of_everything_says_nothing_and_aborts_nothing() -> None:
    assert flushed(0) == ["flush"]
