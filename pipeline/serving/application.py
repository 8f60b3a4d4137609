"""The HTTP application of a follower: scores, the models behind them, probes, metrics, and a description."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.config.settings import Config, Serve
from pipeline.monitoring.http_server import Limits
from pipeline.records.encoding import encode
from pipeline.serving.metrics import RequestMetrics, follower_registry
from pipeline.serving.openapi import document
from pipeline.serving.score_endpoint import JSON, ModelLender, ScoreEndpoint
from pipeline.serving.score_log import ScoreLog
from pipeline.serving.scoring_answers import LiveAnswer, ModelAnswer, Problem, ReadyAnswer
from pipeline.serving.scoring_requests import RequestError

SCORE: Final = "/v1/score"
STOOD_STILL: Final = 120.0
"""Seconds after which a follower whose figures stay the same is taken for dead."""
NO_STORE: Final = {"cache-control": "no-store"}


def application(
    follower: ModelLender, config: Config, versions: Mapping[str, str], score_log: ScoreLog | None = None
) -> Starlette:
    """Return the application of a follower.

    It answers `/v1/score`, `/v1/model`, `/livez`, `/readyz`, `/metrics` and `/openapi.json`.

    Parameters
    ----------
    follower
        Holds the models.
    config
        The whole configuration.
    versions
        Of this program and of what its bits depend on, by name.
    score_log
        Where answers are logged; None for nowhere.
    """
    registry, requests = follower_registry(lambda: follower.figures, score_log, config.serve.max_lag)
    endpoint = ScoreEndpoint(follower, config, score_log, requests)
    requests.under_way.set_function(lambda: endpoint.under_way)
    description = encode(document(config.stream.name, endpoint.decoder))
    newest, new_at = follower.figures, time.monotonic()

    async def model(_: Request) -> Response:
        stream, group = config.stream.name, config.kafka.group
        return _json(ModelAnswer.of(follower.figures, stream, group, dict(versions)))

    async def live(_: Request) -> Response:
        nonlocal newest, new_at
        now = time.monotonic()
        if follower.figures is not newest:
            newest, new_at = follower.figures, now
        age = now - new_at
        answer = LiveAnswer(age <= STOOD_STILL, round(age, 1), STOOD_STILL)
        return _json(answer, ok=answer.alive)

    async def ready(_: Request) -> Response:
        answer = ReadyAnswer.of(follower.figures, config.serve.max_lag, time.monotonic())
        return _json(answer, ok=answer.ready)

    async def metrics(request: Request) -> Response:
        encoded, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encoded(registry), headers={"content-type": content_type, **NO_STORE})

    async def openapi(_: Request) -> Response:
        return Response(description, media_type=JSON)

    answers: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/v1/model": model,
        "/livez": live,
        "/readyz": ready,
        "/metrics": metrics,
        "/openapi.json": openapi,
    }
    routes = [Route(SCORE, endpoint.answer, methods=["POST"])]
    routes += [Route(path, answer, methods=["GET"]) for path, answer in answers.items()]  # and so HEAD
    counted = Middleware(_Counted, requests=requests, paths={SCORE, *answers})
    return Starlette(routes=routes, middleware=[counted], exception_handlers={HTTPException: _refused})


def server_limits(serve: Serve) -> Limits:
    """Return what clients of a follower may take: connections are kept, and requests follow one another.

    Parameters
    ----------
    serve
        How long a request may take to arrive; its answer has as long again to be read.
    """
    patience = 2 * serve.timeout / 1000
    return Limits(patience, connections=1_024, keep_alive=75, grace=1 + round(patience))


class _Counted:
    """Counts requests and their seconds, and answers those that fail.

    Parameters
    ----------
    app
        Answers them.
    requests
        Where they are counted.
    paths
        Paths that are counted each by itself.
    """

    def __init__(self, app: ASGIApp, requests: RequestMetrics, paths: set[str]) -> None:
        self._app = app
        self._requests = requests
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        path = scope["path"]
        try:
            await self._app(scope, receive, noted)
        except Exception:
            structlog.get_logger().exception("a request could not be answered", path=path)
            if not status:
                failed = _problem(RequestError(500, "the follower failed: its log says why"))
                await failed(scope, receive, noted)
        finally:
            route = path if path in self._paths else "other"
            self._requests.requests.labels(route, str(status)).inc()
            self._requests.seconds.labels(route).observe(time.perf_counter() - begun)


def _json(answer: object, *, ok: bool = True) -> Response:
    return Response(encode(answer) + b"\n", 200 if ok else 503, headers=NO_STORE, media_type=JSON)


async def _refused(_: Request, error: Exception) -> Response:
    """Answer a request that is refused, here or by Starlette because of its path or method."""
    assert isinstance(error, HTTPException)
    if not isinstance(error, RequestError):
        there_is = f"{error.detail}: /openapi.json says what there is"
        return _problem(RequestError(error.status_code, there_is), error.headers)
    return _problem(error, error.headers)


def _problem(error: RequestError, headers: Mapping[str, str] | None = None) -> Response:
    body = encode(Problem.of(error))
    return Response(body, error.status_code, headers, media_type="application/problem+json")
