"""A broker that does not answer: how far a connection comes, and why no further."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from pipeline.broker.launch import free_ports
from pipeline.config.tree import Kafka
from pipeline.errors import BrokerError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.probe import probe


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
    assert "does not speak TLS" in probe({"bootstrap.servers": closing, "security.protocol": "SSL"}).cause
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
