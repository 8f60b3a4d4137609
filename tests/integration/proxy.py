"""A TCP proxy between clients and one broker, that reads along and makes trouble.

It understands no more of Kafka's protocol than that a request is four bytes of length, followed by two bytes
that say what it is. TLS and what answers mean are not modelled.
"""

from __future__ import annotations

import socket
import struct
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
"""Told a request's number; what happens to it: `PASS`, `LOSE_ANSWER`, `CUT`, or `SILENCE`."""

PASS = "pass"
LOSE_ANSWER = "lose answer"  # the broker gets the request; the connection ends before the answer is through
CUT = "cut"  # the broker does not get it, the connection ends
SILENCE = "silence"  # the broker gets it; from then on there is silence, until `heal`


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
        self._passing = threading.Event()
        """Not set while there is silence."""
        self._passing.set()
        self._refusing = False
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._connections: set[_Connection] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._listener.close()
        self.cut()
        self._passing.set()

    def cut(self) -> None:
        """Reset all connections, and new ones as soon as they come, until `heal`."""
        with self._lock:
            self._refusing = True
            for connection in self._connections:
                connection.reset()

    def silence(self) -> None:
        """Let no byte, and no end of a connection, pass in either direction until `heal`.

        What is sent meanwhile is kept and arrives then, as TCP sends again what was not acknowledged. This is
        so even if the sender has given up the connection.
        """
        self._passing.clear()

    def heal(self) -> None:
        """Let everything pass again."""
        self.fault_rule = lambda _: PASS
        self.delay = 0.0
        self._refusing = False
        self._passing.set()

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            with self._lock:
                if self._refusing:
                    _reset(client)
                    continue
                connection = _Connection(self, client)
                self._connections.add(connection)
            connection.start()


class _Connection:
    def __init__(self, proxy: Proxy, client: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = socket.socket()
        self._answer_lost = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._connect, daemon=True).start()

    def reset(self) -> None:
        _reset(self._client)
        _reset(self._server)

    def _connect(self) -> None:
        self._proxy._passing.wait()
        try:
            self._server.connect(("127.0.0.1", self._proxy.target))
        except OSError:  # nobody listens, or this connection was reset
            self._end()
            return
        threading.Thread(target=self._run, args=[self._answers], daemon=True).start()
        self._run(self._requests)

    def _run(self, pump: Callable[[], None]) -> None:
        with suppress(OSError):  # the connection ended, by either side
            pump()
        self._proxy._passing.wait()
        self._end()

    def _end(self) -> None:
        if self._proxy._refusing:
            self.reset()
        _close(self._client)
        _close(self._server)
        with self._proxy._lock:
            self._proxy._connections.discard(self)

    def _requests(self) -> None:
        proxy = self._proxy
        while (request := _request(self._client)) is not None:
            proxy._passing.wait()
            what = proxy.fault_rule(int.from_bytes(request[4:6], "big"))
            proxy.done[what] += 1
            if what == CUT:
                return
            if proxy.delay:
                proxy._stopped.wait(proxy.delay)
            if what == SILENCE:
                proxy.silence()
            if what == LOSE_ANSWER:
                self._answer_lost.set()
            self._server.sendall(request)

    def _answers(self) -> None:
        while data := self._server.recv(1 << 16):
            self._proxy._passing.wait()
            if self._answer_lost.is_set():
                return
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


def _reset(end: socket.socket) -> None:
    """Close a connection with RST rather than FIN; threads that read from it go on."""
    with suppress(OSError):  # it is not connected, or closed
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RD)
    end.close()
