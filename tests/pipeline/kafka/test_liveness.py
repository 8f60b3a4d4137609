from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaException

from pipeline.kafka import liveness
from pipeline.kafka.access.new_client import LIBRDKAFKA_LOGGER
from pipeline.kafka.liveness import Liveness


@pytest.fixture
def lost() -> Iterator[Consumer]:
    """A consumer that no broker answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        consumer = Consumer(
            {"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "lost"}, logger=LIBRDKAFKA_LOGGER
        )
        yield consumer
        consumer.close()


def test_a_consumer_that_no_broker_answers_is_found_out(
    lost: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "MAX_SILENCE", 0.0)
    monkeypatch.setattr(liveness, "ANSWER_TIMEOUT", 0.2)
    with pytest.raises(KafkaException):
        Liveness(lost, "interactions").check(received=False)


class Counting:
    """A consumer that counts how often it asks the brokers, which answer at once."""

    def __init__(self) -> None:
        self.requests = 0

    def list_topics(self, topic: str, timeout: float) -> None:  # noqa: ARG002 - as the client has it
        self.requests += 1


def test_nobody_is_asked_as_long_as_something_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "MAX_SILENCE", 0.0)
    consumer = Counting()
    check = Liveness(cast(Consumer, consumer), "interactions").check
    check(received=True)
    assert consumer.requests == 0
    check(received=False)
    assert consumer.requests == 1


def test_nobody_is_asked_after_a_short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "MAX_SILENCE", float("inf"))
    consumer = Counting()
    check = Liveness(cast(Consumer, consumer), "interactions").check
    check(received=False)
    assert consumer.requests == 0
    monkeypatch.setattr(liveness, "MAX_SILENCE", 0.0)
    check(received=False)
    assert consumer.requests == 1
