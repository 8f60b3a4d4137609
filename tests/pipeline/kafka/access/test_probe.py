"""A broker that does not answer: how far a connection comes, and why no further."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from pipeline.broker.launch import free_ports
from pipeline.config.settings import Kafka
from pipeline.errors import BrokerError
from pipeline.kafka.access import connection
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.probe import Finding, Step, probe


@pytest.fixture
def closing() -> Iterator[str]:
    """The address of a server that closes each connection at its first bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_where_nothing_listens_a_broker_is_offered() -> None:
    [port] = free_ports(1)
    with pytest.raises(BrokerError, match=f"nothing listens on 127.0.0.1:{port} .* `forks broker start`"):
        Admin(Kafka(bootstrap=f"127.0.0.1:{port}"))


def test_a_name_that_nobody_knows_is_named() -> None:
    found = probe({"bootstrap.servers": "kafka.invalid:9092"})
    assert "the name kafka.invalid cannot be resolved" in found.cause


def test_a_server_without_tls_is_told_from_one_that_wants_sasl(closing: str) -> None:
    found = probe({"bootstrap.servers": closing, "security.protocol": "SSL"})
    assert "does not speak TLS on this port (it closed the connection)" in found.cause
    found = probe({"bootstrap.servers": closing})
    assert "it may want SASL (set security.protocol to SASL_PLAINTEXT" in found.cause
    sasl = {"bootstrap.servers": closing, "security.protocol": "SASL_PLAINTEXT"}
    assert "check that it is a Kafka broker with SASL" in probe(sasl).cause


def test_the_address_that_came_furthest_counts(closing: str) -> None:
    [port] = free_ports(1)
    servers = f"kafka.invalid:1,127.0.0.1:{port},{closing}"
    assert f"{closing} is connected" in probe({"bootstrap.servers": servers}).cause


def test_an_authority_that_cannot_be_read_is_named(closing: str) -> None:
    settings = {"bootstrap.servers": closing, "security.protocol": "SSL", "ssl.ca.pem": "no certificate"}
    assert "the certificates in ssl.ca.location cannot be read" in probe(settings).cause


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Three requests in a row that fail with an error of the client, before one is answered."""
    left = [0, 0, 0]

    def list_topics(*_: object, **__: object) -> None:
        if left:
            left.pop()
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    monkeypatch.setattr(AdminClient, "list_topics", list_topics)
    monkeypatch.setattr(connection, "CONFIRMATION", 0.0)
    return left


def test_a_broker_that_is_connected_may_answer_after_an_error(
    failing: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "probe", lambda _: Finding(Step.REQUEST, "it does not answer"))
    Admin(Kafka(bootstrap="127.0.0.1:1"))
    assert not failing


def test_it_is_not_waited_for_without_end(failing: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "probe", lambda _: Finding(Step.REQUEST, "it does not answer"))
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 0.0)
    with pytest.raises(BrokerError, match="it does not answer"):
        Admin(Kafka(bootstrap="127.0.0.1:1"))
    assert len(failing) == 2


def test_a_connection_that_does_not_come_about_is_reported_at_once(
    failing: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "probe", lambda _: Finding(Step.HANDSHAKE, "it is refused"))
    with pytest.raises(BrokerError, match="it is refused"):
        Admin(Kafka(bootstrap="127.0.0.1:1"))
    assert len(failing) == 2
