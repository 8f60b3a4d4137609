from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException

from pipeline.kafka import liveness
from pipeline.kafka.clients import LIBRDKAFKA_LOGGER
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


def test_nobody_is_asked_as_long_as_something_comes(lost: Consumer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "MAX_SILENCE", 0.0)
    Liveness(lost, "interactions").check(received=True)


def test_nobody_is_asked_after_a_short_silence(lost: Consumer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "MAX_SILENCE", float("inf"))
    Liveness(lost, "interactions").check(received=False)
