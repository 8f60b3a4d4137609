"""Serve metrics and probes over HTTP, in a thread that no client can hold up.

One event loop answers all requests from what is in memory. A connection serves one request and is closed
after `DEADLINE` seconds, whatever it is doing: sending half a request, or not reading the answer. There are
`MAX_CONNECTIONS` at most: another one takes the place of the oldest, which has had the most time.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipeline.config.settings import host_and_port
from pipeline.errors import ConfigError

DEADLINE: Final = 5.0
"""Seconds for which a connection may last."""
MAX_CONNECTIONS: Final = 256
"""Connections at a time: several times `BACKLOG`, so that one which sends its request at once is answered."""
MAX_HEADER_BYTES: Final = 16_384
"""Bytes of a request's line and headers; more are answered with 400."""
BACKLOG: Final = 64
"""Connections that the system holds until they are accepted, and that are accepted at once."""
START_TIMEOUT: Final = 30.0
"""Seconds for the thread to begin and to end."""


class BoundedProtocol(H11Protocol):
    """The HTTP protocol of one connection, whose time and number are bounded."""

    open: dict[BoundedProtocol, None]
    """All connections of the server, the oldest first; set by `_protocol_of`."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Take a connection; close the oldest if there are too many."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(DEADLINE, transport.abort)
        self.open[self] = None
        if len(self.open) > MAX_CONNECTIONS:
            oldest = next(iter(self.open))
            del self.open[oldest]
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._deadline.cancel()
        self.open.pop(self, None)
        super().connection_lost(exc)


def _protocol_of() -> type[BoundedProtocol]:
    """Return a protocol for one server, which has its own connections."""
    return type("Protocol", (BoundedProtocol,), {"open": {}})


class _Server(uvicorn.Server):
    """A server that says when it has begun."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@contextmanager
def serve(app: ASGIApp, address: str | None, setting: str) -> Iterator[None]:
    """Serve an application over HTTP inside the block.

    Parameters
    ----------
    app
        The application.
    address
        Where to listen, ``host:port`` or ``[host]:port``; None to serve nothing.
    setting
        The name of the setting that has the address, for errors.

    Raises
    ------
    ConfigError
        The address cannot be listened on.
    """
    if address is None:
        yield
        return
    with listening(address, setting) as listener:
        closing = [("connection", "close")]
        server = _Server(server_config(app, _protocol_of(), BACKLOG, grace=1, headers=closing))
        thread = threading.Thread(target=server.run, args=([listener],), name="http", daemon=True)
        thread.start()
        try:
            if not server.ready.wait(START_TIMEOUT):
                raise ConfigError(f"{setting}: the HTTP server at {address} does not start")
            yield
        finally:
            server.should_exit = True
            thread.join(START_TIMEOUT)


def server_config(
    app: ASGIApp, protocol: type[H11Protocol], backlog: int, *, grace: int, **more: Any
) -> uvicorn.Config:
    """Return how an application is served: plain HTTP, without logs of uvicorn's own.

    Parameters
    ----------
    app
        The application.
    protocol
        The protocol of a connection.
    backlog
        Connections that the system holds until they are accepted.
    grace
        Seconds for requests under way when the server ends.
    **more
        Further settings of uvicorn.
    """
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=backlog,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_graceful_shutdown=grace,
        **more,
    )


@contextmanager
def listening(address: str, setting: str, backlog: int = BACKLOG) -> Iterator[socket.socket]:
    """Listen at an address inside the block.

    Parameters
    ----------
    address
        Host and port, as `host_and_port` reads them.
    setting
        The name of the setting that has the address, for errors.
    backlog
        Connections that the system holds until they are accepted.

    Raises
    ------
    ConfigError
        The address cannot be listened on.
    """
    host, port = host_and_port(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=backlog)
    except OSError as error:
        raise ConfigError(
            f"{setting}: {address} cannot be listened on: {error.strerror}. Every process of a "
            "machine needs a port of its own"
        ) from error
    with listener:
        yield listener
