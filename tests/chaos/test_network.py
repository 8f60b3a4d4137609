"""A network that is cut or silent lets nothing pass; what was sent into a silence arrives at its end."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from tests.chaos.network import Network
from tests.chaos.schedule import BROKERS, NETWORK_FAULTS, Fault, plan
from tests.integration.harness import until
from tests.integration.proxy import Proxy

NOTICE = 0.3
"""Seconds within which something would have passed."""


class Broker(socketserver.ThreadingTCPServer):
    """Answers each request with its own bytes, and notes what it got."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[bytes] = []
        self.ends: list[str] = []
        """How its connections ended."""


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Broker)
        try:
            while data := self.request.recv(1 << 16):
                self.server.got.append(data)
                with suppress(BrokenPipeError):
                    self.request.sendall(data)
            self.server.ends.append("end")
        except ConnectionResetError:
            self.server.ends.append("reset")


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    with Proxy() as between:
        between.target = broker.server_address[1]
        yield between


def request(text: bytes) -> bytes:
    """A request as Kafka frames it."""
    return len(text).to_bytes(4, "big") + text


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), 10.0)


def exchange(client: socket.socket, text: bytes) -> None:
    """Send a request and wait for its answer."""
    client.sendall(request(text))
    assert client.recv(1 << 16) == request(text)


def ask(proxy: Proxy, patience: float = 10.0) -> None:
    """Send a request over a new connection and wait for its answer."""
    with closing(connect(proxy)) as client:
        client.settimeout(patience)
        exchange(client, b"x")


def send_forever(proxy: Proxy, text: bytes) -> None:
    """Send over a new connection until that fails."""
    with closing(connect(proxy)) as client:
        while True:
            client.sendall(request(text))


def test_a_cut_resets_both_sides_and_new_connections_until_it_heals(broker: Broker, proxy: Proxy) -> None:
    with closing(connect(proxy)) as client:
        exchange(client, b"before")
        proxy.cut()
        with pytest.raises(ConnectionError):
            client.recv(1)
    until(lambda: broker.ends == ["reset"], "the reset on the broker's side")
    with pytest.raises(ConnectionError):
        send_forever(proxy, b"during")
    assert broker.got == [request(b"before")]
    proxy.heal()
    ask(proxy)


def test_a_silence_lets_nothing_pass_and_ends_nothing(broker: Broker, proxy: Proxy) -> None:
    with closing(connect(proxy)) as old:
        exchange(old, b"before")
        proxy.silence()
        with closing(connect(proxy)) as new:
            for client in (old, new):
                client.sendall(request(b"during"))
                client.settimeout(NOTICE)
                with pytest.raises(TimeoutError):
                    client.recv(1)
                client.settimeout(10.0)
            assert broker.got == [request(b"before")]
            proxy.heal()
            for client in (old, new):
                assert client.recv(1 << 16) == request(b"during")
    until(lambda: broker.ends == ["end"] * 2, "the ends of the connections")


def test_what_was_sent_into_a_silence_arrives_late_though_the_sender_has_gone(
    broker: Broker, proxy: Proxy
) -> None:
    with closing(connect(proxy)) as client:
        exchange(client, b"before")
        proxy.silence()
        client.sendall(request(b"commit"))
    threading.Event().wait(NOTICE)
    assert broker.got == [request(b"before")]
    assert broker.ends == []
    proxy.heal()
    until(lambda: broker.got == [request(b"before"), request(b"commit")], "what was sent")


def test_answers_are_silent_too(broker: Broker, proxy: Proxy) -> None:
    proxy.fault_rule = lambda _: "silence"
    with closing(connect(proxy)) as client:
        client.sendall(request(b"commit"))
        until(lambda: broker.got == [request(b"commit")], "the request")
        client.settimeout(NOTICE)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(10.0)
        proxy.heal()
        assert client.recv(1 << 16) == request(b"commit")


@pytest.mark.parametrize("fault", sorted(NETWORK_FAULTS, key=str))
def test_only_the_two_sides_are_parted(broker: Broker, fault: Fault) -> None:
    with Network(workers=2, brokers=[1, 2]) as network:
        for proxy in network._proxies.values():
            proxy.target = broker.server_address[1]
        network.fail(fault, workers=[1], brokers=[1, 2])
        for (worker, _), proxy in network._proxies.items():
            if worker == 0:
                ask(proxy)
            else:
                with pytest.raises((ConnectionError, TimeoutError)):
                    ask(proxy, NOTICE)
        network.heal()
        for proxy in network._proxies.values():
            ask(proxy)


def test_each_run_on_a_cluster_has_network_faults_and_long_ones_have_all_sides() -> None:
    assert {injection.fault for injection in plan(5, 1.0, 3, cluster=True)} >= NETWORK_FAULTS
    injections = [injection for injection in plan(0, 60.0, 3, cluster=True) if injection.sides[0]]
    assert {injection.fault for injection in injections} == NETWORK_FAULTS
    numbers = Counter((len(workers), len(brokers)) for workers, brokers in (i.sides for i in injections))
    assert numbers.keys() == {(1, len(BROKERS)), (3, 1), (1, 1)}
