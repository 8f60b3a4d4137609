"""A TCP proxy between clients and a broker, that reads along and makes trouble.

It understands no more of Kafka's protocol than that a request is four bytes of length, followed by two bytes
that say what it is. TLS, several brokers and what answers mean are not modelled.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

END_TRANSACTION = 26
"""The request's number in Kafka's protocol: the commit."""
HEARTBEAT = 12
"""The same: a member's sign of life to its group."""

FaultRule = Callable[[int], str]
"""Told a request's number; what happens to it: `PASS`, `LOSE_ANSWER`, `CUT`, or `SWALLOW`."""

PASS = "pass"
LOSE_ANSWER = "lose answer"  # the broker gets the request; the connection ends before the answer is through
CUT = "cut"  # the broker does not get it, the connection ends
SWALLOW = "swallow"  # the broker gets it; from then on no byte passes on any connection, until `heal`


class Proxy:
    """Listens on a free port of 127.0.0.1."""

    def __init__(self) -> None:
        self.target = 0
        """The port of the broker's listener that advertises this proxy's `port`; to be set."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.fault_rule: FaultRule = lambda _: PASS
        self.delay = 0.0
        """Seconds by which every request is held up."""
        self.done: Counter[str] = Counter()
        """Requests by what happened to them."""
        self._silent = threading.Event()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """End all connections."""
        with self._lock:
            for end in self._sockets:
                _close(end)
            self._sockets.clear()

    def heal(self) -> None:
        """Let everything pass again, on new connections."""
        self.fault_rule = lambda _: PASS
        self.delay = 0.0
        self._silent.clear()
        self.cut()

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target), timeout=5.0)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self._lock:
                self._sockets |= {client, server}
            _Connection(self, client, server).start()


class _Connection:
    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._answer_lost = threading.Event()

    def start(self) -> None:
        for pump in (self._requests, self._answers):
            threading.Thread(target=self._run, args=[pump], daemon=True).start()

    def _run(self, pump: Callable[[], None]) -> None:
        with suppress(OSError):  # the connection ended, by either side
            pump()
        _close(self._client)
        _close(self._server)

    def _requests(self) -> None:
        while (request := _request(self._client)) is not None:
            number = int.from_bytes(request[4:6], "big")
            proxy = self._proxy
            what = SWALLOW if proxy._silent.is_set() else proxy.fault_rule(number)
            proxy.done[what] += 1
            if what == CUT:
                return
            if proxy.delay:
                proxy._stopped.wait(proxy.delay)
            if what == SWALLOW and proxy._silent.is_set():
                continue
            if what == SWALLOW:
                proxy._silent.set()
            if what == LOSE_ANSWER:
                self._answer_lost.set()
            self._server.sendall(request)

    def _answers(self) -> None:
        while data := self._server.recv(1 << 16):
            if self._answer_lost.is_set():
                return
            if not self._proxy._silent.is_set():
                self._client.sendall(data)


def _request(client: socket.socket) -> bytes | None:
    length = _exactly(client, 4)
    if length is None:
        return None
    body = _exactly(client, int.from_bytes(length, "big"))
    return None if body is None else length + body


def _exactly(client: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        part = client.recv(count - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
