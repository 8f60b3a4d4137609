"""Answer requests for metrics and probes from what a worker last said of itself."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Final

import orjson
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pipeline.config.tree import Config
from pipeline.monitoring.families import FAMILIES, LIMITS, Scrape
from pipeline.monitoring.monitor import Monitor
from pipeline.monitoring.readiness import alive, alive_limit, not_ready

CACHE_SECONDS: Final = 1.0
"""Seconds for which the text of a scrape is used again: however many ask, it is made once."""
NO_STORE: Final = {"cache-control": "no-store"}


class WorkerCollector(Collector):
    """Collects the metrics of a worker.

    Parameters
    ----------
    monitor
        What the worker says of itself.
    config
        The whole configuration.
    info
        What the worker is: its name, group and versions.
    """

    def __init__(self, monitor: Monitor, config: Config, info: Mapping[str, str]) -> None:
        self._monitor = monitor
        self._info = info
        limits = (
            config.worker.buffer,
            config.join.max_pending,
            config.join.max_closed,
            config.join.early_bytes,
            config.features.max_entities,
            config.worker.dead_letters,
        )
        self._limits = {name: float(limit) for (name, _), limit in zip(LIMITS, limits, strict=True)}

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of a scrape."""
        now, vitals = time.monotonic(), self._monitor.vitals
        scrape = Scrape(self._monitor.figures, vitals, not_ready(vitals, now), now, self._info, self._limits)
        for family in FAMILIES:
            yield family.metric(scrape)


def application(monitor: Monitor, config: Config, info: Mapping[str, str]) -> Starlette:
    """Return the application that answers `/metrics`, `/livez` and `/readyz`.

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
    made: dict[str, tuple[float, bytes]] = {}

    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        at, text = made.get(content_type, (0.0, b""))
        if time.monotonic() - at >= CACHE_SECONDS:
            text = encode(registry)
            made[content_type] = time.monotonic(), text
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
            "reasons": [reason._asdict() for reason in reasons],
            "partitions": list(vitals.assigned or ()),
        }
        if not reasons and not vitals.assigned:
            body["note"] = "no partitions: the group has at least as many other workers as partitions"
        return _json(body, ok=not reasons)

    routes = [
        Route(path, answer, methods=["GET"])  # and so HEAD
        for path, answer in (("/metrics", metrics), ("/livez", live), ("/readyz", ready))
    ]
    return Starlette(routes=routes)


def _json(body: object, *, ok: bool) -> Response:
    return Response(
        orjson.dumps(body) + b"\n", 200 if ok else 503, headers=NO_STORE, media_type="application/json"
    )
