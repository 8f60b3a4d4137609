"""The HTTP server of workers and followers: uvicorn in a thread, which no client can hold up.

uvicorn has no limit for the time that a request takes to arrive or its answer to be read, and its
`limit_concurrency` refuses new connections, probes too, while silent ones stay. `BoundedProtocol` adds both
limits; all else is a setting of uvicorn.
"""

from __future__ import annotations

import asyncio
import math
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipeline.config.settings import host_and_port
from pipeline.errors import ConfigError

MAX_HEADER_BYTES: Final = 16_384
"""Bytes of a request's line and headers; more are answered with 400."""
STOP_TIMEOUT: Final = 30.0
"""Seconds for the thread to end, beside those for requests under way."""


class Limits(NamedTuple):
    """What clients of a server may take."""

    patience: float
    """Seconds for a request to arrive and its answer to be read."""
    connections: int
    """Connections at a time. The system holds a quarter as many until they are accepted, so that one which
    sends its request at once is answered before others take its place."""
    keep_alive: int
    """Seconds for which a connection may be idle; 0 where each serves one request."""
    grace: int
    """Seconds for requests under way when the server stops."""


class BoundedProtocol(H11Protocol):
    """The HTTP protocol of one connection, whose time and number are bounded.

    A connection ends when a request has not arrived, or its answer is not read, after `Limits.patience`. One
    that is too many takes the place of the connection whose last request or answer began first. The tests of
    slow clients, of answers that are not read and of thousands of connections hold this.

    Parameters
    ----------
    limits
        What clients may take.
    others
        All connections of the server, the one that makes room first.
    **more
        What uvicorn gives a protocol.
    """

    def __init__(self, limits: Limits, others: dict[BoundedProtocol, None], **more: Any) -> None:
        super().__init__(**more)
        self._limits = limits
        self._others = others
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Take a connection; end another one if there are too many."""
        super().connection_made(transport)
        # asyncio does so only where the listener names its protocol. Without it the body of an answer waits
        # until the client confirms the headers, 40 ms on Linux.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._expect()
        self._end_if_late()
        if len(self._others) > self._limits.connections:
            first = next(iter(self._others))
            del self._others[first]
            first.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        if self._idle:
            self._expect()
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Wait for the next request, which may be here, or for the answer to be read."""
        if not self.transport.get_write_buffer_size():
            self._expect()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        if self._timer is not None:
            self._timer.cancel()
        self._others.pop(self, None)
        super().connection_lost(exc)

    def _expect(self) -> None:
        """Let the time of a request begin."""
        self._deadline = self.loop.time() + self._limits.patience
        self._others.pop(self, None)
        self._others[self] = None

    def _end_if_late(self) -> None:
        """End the connection if a request is late, else look again when one may be."""
        left = self._limits.patience if self._idle else self._deadline - self.loop.time()
        if left > 0:
            self._timer = self.loop.call_later(left, self._end_if_late)
        else:
            self.transport.abort()

    @property
    def _idle(self) -> bool:
        """Whether a request was answered, its answer read, and no part of another one is here."""
        complete = self.cycle is not None and self.conn.their_state is h11.IDLE
        return complete and not (self.conn.trailing_data[0] or self.transport.get_write_buffer_size())


@contextmanager
def serve(app: ASGIApp, listener: socket.socket, limits: Limits) -> Iterator[None]:
    """Answer HTTP requests in a thread inside the block, then finish those that are under way.

    Parameters
    ----------
    app
        The application.
    listener
        Where to listen: see `listening`.
    limits
        What clients may take.
    """
    protocol: Any = partial(BoundedProtocol, limits, {})  # uvicorn only calls it, as it would a class
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            headers=[] if limits.keep_alive else [("connection", "close")],
            backlog=limits.connections // 4,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            timeout_keep_alive=limits.keep_alive,
            timeout_graceful_shutdown=limits.grace,
        )
    )
    thread = threading.Thread(target=server.run, args=([listener],), name="http", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(STOP_TIMEOUT + limits.grace)


@contextmanager
def listening(address: str, setting: str) -> Iterator[socket.socket]:
    """Listen at an address inside the block.

    Parameters
    ----------
    address
        Host and port, as `host_and_port` reads them.
    setting
        The name of the setting that has the address, for errors.

    Raises
    ------
    ConfigError
        The address cannot be listened on.
    """
    host, port = host_and_port(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(
            f"{setting}: {address} cannot be listened on: {error.strerror}. Every process of a "
            "machine needs a port of its own"
        ) from error
    with listener:
        yield listener
