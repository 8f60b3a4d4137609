from __future__ import annotations

import threading

import pytest
from confluent_kafka import KafkaError, KafkaException

from pipeline.kafka.deadline import BackgroundCall


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
