from __future__ import annotations

import threading

import pytest
import structlog
from confluent_kafka import KafkaError, KafkaException

from pipeline.kafka.deadline import BackgroundCall, close_consumer


def test_the_result_is_that_of_the_call() -> None:
    attempt = BackgroundCall(lambda: 7)
    assert attempt.result(10.0) == 7
    assert attempt.done


def test_a_failure_is_raised_where_the_result_is_asked_for_each_time() -> None:
    def fail() -> None:
        raise KafkaException(KafkaError(KafkaError._FENCED))

    attempt = BackgroundCall(fail)
    for _ in range(2):
        with pytest.raises(KafkaException, match="_FENCED"):
            attempt.result(10.0)


def test_a_call_that_does_not_end_is_given_up_and_its_result_is_there_once_it_has_ended() -> None:
    end = threading.Event()
    attempt = BackgroundCall(lambda: end.wait(60.0))
    with pytest.raises(KafkaException, match=r"no answer within 0\.01 s"):
        attempt.result(0.01)
    assert not attempt.done
    end.set()
    assert attempt.result(60.0)


class _Client:
    """A client whose close waits until it may end, and then fails if it has to."""

    def __init__(self, failure: KafkaError | None = None) -> None:
        self.may_end, self.closed = threading.Event(), False
        self._failure = failure

    def close(self) -> None:
        self.may_end.wait(60.0)
        if self._failure is not None:
            raise KafkaException(self._failure)
        self.closed = True


def test_a_consumer_that_closes_in_time_is_closed_without_a_word() -> None:
    client = _Client()
    client.may_end.set()
    with structlog.testing.capture_logs() as logs:
        close_consumer(client)
    assert client.closed
    assert not logs


def test_a_consumer_that_never_closes_holds_nothing_up_and_is_said() -> None:
    client = _Client()
    with structlog.testing.capture_logs() as logs:
        close_consumer(client, 0.01)
    assert not client.closed
    assert [(each["log_level"], each["seconds"]) for each in logs] == [("warning", 0.01)]
    client.may_end.set()


def test_another_failure_of_a_close_is_raised() -> None:
    client = _Client(KafkaError(KafkaError._FENCED))
    client.may_end.set()
    with pytest.raises(KafkaException, match="_FENCED"):
        close_consumer(client)
