"""Answer requests for metrics, probes and the status page from what a worker last said of itself."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Final

import msgspec
import orjson
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pipeline.config.settings import Config
from pipeline.monitoring.families import WorkerCollector
from pipeline.monitoring.http_server import Limits
from pipeline.monitoring.monitor import Monitor
from pipeline.monitoring.page import StatusPage
from pipeline.monitoring.readiness import alive, alive_limit, not_ready
from pipeline.monitoring.status import history_of, status_of

CACHE_SECONDS: Final = 1.0
"""Seconds for which an answer that costs something is used again: however many ask, it is made once."""
SERVER_LIMITS: Final = Limits(patience=5.0, connections=256, keep_alive=0, grace=1)
"""What clients of a worker's server may take: probes and scrapes are single requests."""
NO_STORE: Final = {"cache-control": "no-store"}
NO_SNIFF: Final = {"x-content-type-options": "nosniff"}


def application(monitor: Monitor, config: Config, info: Mapping[str, str]) -> Starlette:
    """Return the application that answers `/metrics`, `/livez`, `/readyz` and the status page.

    Parameters
    ----------
    monitor
        What the worker says of itself.
    config
        The whole configuration.
    info
        What the worker is: its name, group and versions.
    """
    registry = CollectorRegistry()
    registry.register(WorkerCollector(monitor, config, info))
    ProcessCollector(registry=registry)
    limit = alive_limit(config.worker)
    page = StatusPage.load()
    begun = time.monotonic()
    named = {**info, "stream": config.stream.name}
    made: dict[str, tuple[float, bytes]] = {}

    def once(key: str, make: Callable[[], bytes]) -> bytes:
        at, body = made.get(key, (-math.inf, b""))
        if time.monotonic() - at >= CACHE_SECONDS:
            body = make()
            made[key] = time.monotonic(), body
        return body

    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        text = once(content_type, lambda: encode(registry))
        return Response(text, headers={"content-type": content_type, **NO_STORE})

    async def live(_: Request) -> Response:
        now, vitals = time.monotonic(), monitor.vitals
        is_alive = alive(vitals, now, limit)
        body = {"alive": is_alive, "loop_age_s": round(now - vitals.beat, 1), "limit_s": limit}
        return _json(body, ok=is_alive)

    async def ready(_: Request) -> Response:
        vitals = monitor.vitals
        reasons = not_ready(vitals, time.monotonic())
        body = {
            "ready": not reasons,
            "reasons": [msgspec.structs.asdict(reason) for reason in reasons],
            "partitions": list(vitals.assigned or ()),
        }
        if not reasons and not vitals.assigned:
            body["note"] = "no partitions: the group has at least as many other workers as partitions"
        return _json(body, ok=not reasons)

    async def index(_: Request) -> Response:
        return Response(page.html, headers={**NO_STORE, **page.headers}, media_type="text/html")

    def make_status() -> bytes:
        now, vitals = time.monotonic(), monitor.vitals
        reasons = not_ready(vitals, now)
        return msgspec.json.encode(
            status_of(monitor.metrics, vitals, reasons, named, now=now, clock=time.time(), begun=begun)
        )

    async def status(_: Request) -> Response:
        return _of_page(once("status", make_status), NO_STORE)

    async def history(request: Request) -> Response:
        body = once("history", lambda: msgspec.json.encode(history_of(monitor.metrics.history)))
        tag = f'"{sha256(body).hexdigest()[:32]}"'
        headers = {
            "cache-control": "no-cache",
            "etag": tag,
        }  # a browser asks each time whether it has changed
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return _of_page(body, headers)

    answers = {
        "/": index,
        "/v1/status": status,
        "/v1/history": history,
        "/metrics": metrics,
        "/livez": live,
        "/readyz": ready,
    }
    routes = [Route(path, answer, methods=["GET"]) for path, answer in answers.items()]  # and so HEAD
    return Starlette(routes=routes)


def _of_page(body: bytes, headers: Mapping[str, str]) -> Response:
    return Response(body, headers={**headers, **NO_SNIFF}, media_type="application/json")


def _json(body: object, *, ok: bool) -> Response:
    return Response(
        orjson.dumps(body) + b"\n", 200 if ok else 503, headers=NO_STORE, media_type="application/json"
    )
