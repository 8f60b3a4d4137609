"""Serve a follower's application over HTTP, with connections that are kept, and bounded in number and time.

A request has `serve.timeout` to arrive, and its answer as long again to be read: then its connection ends. An
idle connection ends after `KEEP_ALIVE` seconds. There are `MAX_CONNECTIONS` at most: another one takes the
place of the one that has been idle for longest, or is refused if none is idle.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipeline.monitoring.http_server import server_config

KEEP_ALIVE: Final = 75
"""Seconds for which a connection may be idle."""
MAX_CONNECTIONS: Final = 1_024
"""Connections at a time."""
BACKLOG: Final = 256
"""Connections that the system holds until they are accepted."""


class KeptProtocol(H11Protocol):
    """The HTTP protocol of one connection, on which one request follows another."""

    idle: dict[KeptProtocol, None]
    """Connections of the server without a request, the one that has been idle for longest first."""
    patience: float
    """Seconds for a request to arrive and its answer to be read."""
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Take a connection, if there is room or one that is idle."""
        super().connection_made(transport)
        # asyncio does so only where the listener names its protocol. Without it the body of an answer waits
        # until the client confirms the headers, 40 ms on Linux.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > MAX_CONNECTIONS:
            if not self.idle:
                transport.abort()
                return
            next(iter(self.idle)).transport.abort()
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        self._expect()
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the answer to be read."""
        if self._deadline is not None and not self.transport.get_write_buffer_size():
            self._deadline.cancel()
            self._deadline = None
            self.idle[self] = None
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        if self._deadline is not None:
            self._deadline.cancel()
        self.idle.pop(self, None)
        super().connection_lost(exc)

    def _expect(self) -> None:
        """Let the time of a request begin, if it has not."""
        self.idle.pop(self, None)
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.patience, self.transport.abort)


class _Server(uvicorn.Server):
    """A server that leaves signals to others."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class ScoreServer:
    """An HTTP server in the thread that runs it.

    Parameters
    ----------
    app
        The application.
    timeout
        Milliseconds for a request to arrive.
    """

    def __init__(self, app: ASGIApp, timeout: int) -> None:
        self._grace = timeout / 1000
        http = type("Protocol", (KeptProtocol,), {"idle": {}, "patience": 2 * self._grace})
        grace = 1 + round(2 * self._grace)
        config = server_config(app, http, BACKLOG, grace=grace, timeout_keep_alive=KEEP_ALIVE)
        self._server = _Server(config)

    def run(self, listener: socket.socket) -> None:
        """Answer requests until `stop`, then finish those that are under way.

        Parameters
        ----------
        listener
            Where to listen.
        """
        self._server.run([listener])

    def stop(self) -> None:
        """End, once all requests under way are answered. A signal handler or another thread may call it."""
        self._server.should_exit = True

    @property
    def started(self) -> bool:
        """Whether it answers."""
        return self._server.started
