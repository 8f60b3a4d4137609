"""The HTTP server of a follower, asked by real sockets: slow ones, half ones, and while it ends."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from forks.client import Client
from pipeline.broker.launch import free_ports
from pipeline.config.settings import Config, Serve, host_and_port
from pipeline.monitoring.http_server import BoundedProtocol
from tests.support.serving import FakeFollower, FakeModel, served

SECONDS = 20.0
"""For an answer, on a busy machine."""
BODY = json.dumps({"user_id": 7, "items": [{"video_id": 1}]}).encode()
HEAD = b"POST /v1/score HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
WHOLE = HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
QUICK = Config(serve=Serve(timeout="300ms", max_body=100_000))


@pytest.fixture
def address() -> Iterator[str]:
    with served(FakeFollower(), QUICK) as found:
        yield found


def connect(address: str, begin: bytes = b"") -> socket.socket:
    client = socket.create_connection(host_and_port(address), timeout=SECONDS)
    client.sendall(begin)
    return client


def rest(client: socket.socket) -> bytes:
    """What comes until the server ends the connection."""
    parts = []
    try:
        while part := client.recv(1 << 16):
            parts.append(part)
    except (ConnectionResetError, BrokenPipeError):
        pass
    client.close()
    return b"".join(parts)


def status_of(text: bytes) -> int:
    return int(text.split()[1])


def ask(address: str) -> int:
    connection = http.client.HTTPConnection(*host_and_port(address), timeout=SECONDS)
    try:
        connection.request("POST", "/v1/score", BODY, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def test_many_requests_go_over_one_connection(address: str) -> None:
    connection = http.client.HTTPConnection(*host_and_port(address), timeout=SECONDS)
    connection.connect()
    first = connection.sock
    for _ in range(20):
        connection.request("POST", "/v1/score", BODY, {"content-type": "application/json"})
        answer = connection.getresponse()
        assert (answer.status, len(json.loads(answer.read())["items"])) == (200, 1)
    assert connection.sock is first
    connection.close()


def test_a_body_is_sent_at_once_with_its_headers(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after the client's delayed confirmation of the headers, 40 ms later."""
    seen: list[int] = []
    before = BoundedProtocol.data_received

    def data_received(self: BoundedProtocol, data: bytes) -> None:
        connected = self.transport.get_extra_info("socket")
        seen.append(connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        before(self, data)

    monkeypatch.setattr(BoundedProtocol, "data_received", data_received)
    assert ask(address) == 200
    assert seen
    assert all(seen)


def test_requests_in_a_row_are_answered_in_a_row(address: str) -> None:
    client = connect(address, WHOLE * 5 + b"GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    assert rest(client).count(b"HTTP/1.1 200") == 6


def test_half_a_body_is_refused_and_half_a_head_cut_off(address: str) -> None:
    half, head, silent = connect(address, WHOLE[:-5]), connect(address, HEAD), connect(address)
    chunked = connect(address, HEAD + b'transfer-encoding: chunked\r\n\r\n5\r\n{"a"')
    kept = connect(address, WHOLE)
    assert kept.recv(12) == b"HTTP/1.1 200"
    kept.sendall(WHOLE[:-5])
    assert ask(address) == 200
    assert status_of(rest(half)) == 408
    assert status_of(rest(chunked)) == 408
    assert rest(head) == b""
    assert rest(silent) == b""
    assert b"HTTP/1.1 408" in rest(kept)


def test_a_connection_that_ends_within_a_body_harms_nobody(address: str) -> None:
    for _ in range(20):
        connect(address, WHOLE[:-5]).close()
    assert ask(address) == 200


def test_a_long_body_is_refused_before_it_is_read(address: str) -> None:
    client = connect(address, HEAD + b"content-length: 99999999999\r\n\r\n")
    assert status_of(rest(client)) == 413
    client = connect(address, HEAD + b"transfer-encoding: chunked\r\n\r\n")
    try:
        for _ in range(50):
            client.sendall(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
    except OSError:
        pass
    else:
        assert status_of(rest(client)) == 413
    client.close()
    assert ask(address) == 200


def test_an_answer_that_is_not_read_ends_its_connection(address: str) -> None:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.settimeout(SECONDS)
    client.connect(host_and_port(address))
    items = [{"video_id": number} for number in range(1_000)]
    text = json.dumps({"user_id": 7, "items": items}).encode()
    whole = HEAD + b"content-length: %d\r\n\r\n" % len(text) + text
    with pytest.raises(OSError, match=r"reset|[Pp]ipe"):  # noqa: PT012 - until the server has had enough
        while True:
            client.sendall(whole)
    client.close()
    assert ask(address) == 200


def test_answers_to_requests_in_a_row_that_are_not_read_end_their_connection(address: str) -> None:
    """The requests have all come when the answers begin to wait for the client."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.settimeout(SECONDS)
    client.connect(host_and_port(address))
    client.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n" * 5_000)
    end = time.monotonic() + SECONDS
    with pytest.raises(OSError, match=r"reset|[Pp]ipe"):  # noqa: PT012 - until the server has had enough
        while time.monotonic() < end:
            client.sendall(b"\r\n")
            time.sleep(0.05)
    client.close()


def test_a_body_that_is_refused_by_its_path_has_no_more_time_than_others(address: str) -> None:
    client = connect(address, b"POST /nowhere HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n")
    assert client.recv(12) == b"HTTP/1.1 404"
    begun = time.monotonic()
    rest(client)
    assert time.monotonic() - begun < SECONDS


def test_an_answer_that_is_read_late_leaves_its_connection_to_others(address: str) -> None:
    items = [{"video_id": number} for number in range(1_000)]
    text = json.dumps({"user_id": 7, "items": items, "explain": True}).encode()
    connection = http.client.HTTPConnection(*host_and_port(address), timeout=SECONDS)
    connection.connect()
    first = connection.sock
    first.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.request("POST", "/v1/score", text, {"content-type": "application/json"})
    answer = connection.getresponse()
    time.sleep(0.2)
    assert len(json.loads(answer.read())["items"]) == 1_000
    time.sleep(1.0)  # longer than a request has
    connection.request("POST", "/v1/score", BODY, {"content-type": "application/json"})
    assert connection.getresponse().status == 200
    assert connection.sock is first
    connection.close()


@pytest.mark.parametrize("begin", [WHOLE, WHOLE[:-5], HEAD, b""])
def test_connections_are_limited_and_idle_or_slow_ones_make_room(begin: bytes) -> None:
    patient = Config(serve=Serve(timeout="1m"))
    with served(FakeFollower(), patient, connections=10) as address, ExitStack() as stack:
        others = [stack.enter_context(connect(address, begin)) for _ in range(10)]
        if begin == WHOLE:
            assert all(client.recv(12) == b"HTTP/1.1 200" for client in others)
        for _ in range(20):
            assert ask(address) == 200
        rest(others[0])  # ended, long before its time


class Slow(FakeFollower):
    """Takes its time, so that the server can be stopped meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()

    @contextmanager
    def lend_model(self, partition: int) -> Iterator[FakeModel]:
        self.begun.set()
        time.sleep(0.2)
        with super().lend_model(partition) as model:
            yield model


def test_a_stop_lets_requests_under_way_finish() -> None:
    follower = Slow()
    statuses: list[int] = []
    with served(follower, Config()) as address:
        idle = connect(address, b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n")
        assert idle.recv(12) == b"HTTP/1.1 200"
        half = connect(address, WHOLE[:-5])
        thread = threading.Thread(target=lambda: statuses.append(ask(address)))
        thread.start()
        assert follower.begun.wait(SECONDS)
        finish = threading.Thread(target=lambda: half.sendall(WHOLE[-5:]))
        finish.start()
    thread.join()
    finish.join()
    assert statuses == [200]
    assert status_of(rest(half)) == 200
    rest(idle)
    with pytest.raises(ConnectionRefusedError):
        connect(address)


def test_no_request_of_a_client_fails_while_one_of_two_servers_ends_again_and_again() -> None:
    """In one process a server can be stopped only gently; `tests/integration/test_serve.py` kills one."""
    ports, ended, count = free_ports(2), threading.Event(), 0
    asked = threading.Condition()

    def restart() -> None:
        for _ in range(15):
            with served(FakeFollower(), QUICK, port=ports[1]), asked:
                before = count
                assert asked.wait_for(lambda: count >= before + 4, SECONDS)  # noqa: B023 - called at once
        ended.set()

    with served(FakeFollower(), QUICK, port=ports[0]) as address:
        restarts = threading.Thread(target=restart)
        restarts.start()
        with Client([f"http://{address}", f"http://127.0.0.1:{ports[1]}"], timeout=SECONDS) as client:
            while not ended.is_set():
                assert len(client.score({"user_id": 7}, [{"video_id": 1}] * 3).items) == 3
                with asked:
                    count += 1
                    asked.notify()
        restarts.join()
    assert count > 15
