"""Answer requests for scores over HTTP, from the models that a follower holds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import parse_qsl

import msgspec
import structlog
from msgspec import UNSET
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.config.settings import Config
from pipeline.records.encoding import encode
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction
from pipeline.serving.answers import (
    FollowerFigures,
    PartitionNotReadyError,
    Scores,
    UnknownChallengerError,
)
from pipeline.serving.candidates import CandidateType
from pipeline.serving.exploration import Exploration, choose
from pipeline.serving.metrics import follower_registry
from pipeline.serving.openapi import document
from pipeline.serving.score_log import LoggedChoice, ScoreLog, ScoreLogLine
from pipeline.serving.scoring_answers import (
    LiveAnswer,
    ModelAnswer,
    Problem,
    ReadyAnswer,
    ScoreAnswer,
    ScoreAnswers,
)
from pipeline.serving.scoring_requests import INVALID, RequestDecoder, RequestError, ScoreRequest

SCORE: Final = "/v1/score"
JSON: Final = b"application/json"
NDJSON: Final = b"application/x-ndjson"
PROBLEM: Final = b"application/problem+json"
BUSY_RETRY: Final = 1.0
"""Seconds after which a follower that has too much to do may be asked again."""
STOOD_STILL: Final = 120.0
"""Seconds after which a follower whose figures stay the same is taken for dead."""


class Scorer(Protocol):
    """What answers need of a follower: see `pipeline.serving.follower.Follower`."""

    @property
    def figures(self) -> FollowerFigures: ...

    def partition_of(self, key: Id) -> int: ...

    def score(
        self,
        partition: int,
        interactions: Sequence[Interaction],
        *,
        challenger: str | None = None,
        explain: bool = False,
        variances: bool = False,
    ) -> Scores: ...


class Scoring:
    """Answers requests for scores.

    Scoring takes about a millisecond, and runs in the event loop's thread.

    Parameters
    ----------
    follower
        Holds the models.
    config
        The whole configuration.
    score_log
        Where answers are logged; None for nowhere.
    scored
        Called with the scores of each user and their age in seconds, None where that is not known.
    """

    def __init__(
        self,
        follower: Scorer,
        config: Config,
        score_log: ScoreLog | None,
        scored: Callable[[Scores, int | None], None],
    ) -> None:
        self._follower = follower
        self._serve = config.serve
        self._log = score_log
        self._scored = scored
        self._decoder = RequestDecoder(config.stream, config.serve, config.join)
        self._features = CandidateType.of(config.stream).features
        self._exploration = Exploration.of(config.serve, config.labels)
        self._under_way = 0

    @property
    def decoder(self) -> RequestDecoder:
        """What decodes requests."""
        return self._decoder

    @property
    def under_way(self) -> int:
        """The number of requests that are not answered yet."""
        return self._under_way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        self._under_way += 1
        try:
            await asyncio.sleep(0)  # so that all requests that are there are counted before one is scored
            content_type, body = await self._answer(scope, receive)
        except RequestError as error:
            await _send_problem(send, error)
        else:
            await _send(send, 200, content_type, body)
        finally:
            self._under_way -= 1

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[bytes, bytes]:
        """Return the content type and the body of the answer."""
        if self._under_way > self._serve.max_concurrency:
            text = f"{self._under_way - 1} requests are under way, as many as serve.max_concurrency allows"
            raise RequestError(503, text, retry_after=BUSY_RETRY, close=True)
        headers = dict(scope["headers"])
        content_type = _content_type(headers)
        challenger = _challenger(scope["query_string"])
        body = await self._body(headers, receive)
        if content_type == NDJSON:
            lines = [line for line in body.split(b"\n") if line.strip()]
            if len(lines) > self._serve.max_candidates:
                raise RequestError(
                    INVALID, f"{len(lines):,} lines are more than {self._serve.max_candidates:,}"
                )
            answers = await self._each(lines, challenger, "lines")
            return NDJSON, b"".join([encode(answer) + b"\n" for answer in answers])
        found = self._decoder.decode_body(body)
        if isinstance(found, ScoreRequest):
            return JSON, encode(self._scores(found, challenger))
        return JSON, encode(ScoreAnswers(await self._each(found, challenger, "requests")))

    async def _body(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        limit = self._serve.max_body
        too_long = RequestError(413, f"the body has more than {limit:,} bytes: serve.max_body", close=True)
        if int(headers.get(b"content-length", b"0")) > limit:  # h11 has checked that it is a number
            raise too_long
        message = await self._receive(receive)
        body: bytes = message.get("body", b"")
        if not message.get("more_body", False):
            if len(body) > limit:
                raise too_long
            return body
        chunks, size = [body], len(body)
        deadline = asyncio.get_running_loop().time() + self._serve.timeout / 1000
        while message.get("more_body", False):
            if size > limit:
                raise too_long
            message = await self._receive(receive, deadline)
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
        if size > limit:
            raise too_long
        return b"".join(chunks)

    async def _receive(self, receive: Receive, deadline: float | None = None) -> Message:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._serve.timeout / 1000 if deadline is None else deadline
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            text = f"the body did not arrive within {self._serve.timeout} ms: serve.timeout"
            raise RequestError(408, text, close=True) from None
        if message["type"] == "http.disconnect":
            raise RequestError(400, "the connection ended before the body did", close=True)
        return message

    async def _each(
        self, texts: Sequence[bytes | msgspec.Raw], challenger: str | None, name: str
    ) -> list[ScoreAnswer | Problem]:
        """Answer several requests, each by itself."""
        answers: list[ScoreAnswer | Problem] = []
        left = self._serve.max_candidates
        for number, text in enumerate(texts):
            if number:
                await asyncio.sleep(0)  # others are not to wait for all of them
            try:
                request = self._decoder.decode(text)
                left -= len(request.candidates)
                self._check_left(left)
                answers.append(self._scores(request, challenger))
            except RequestError as error:
                where = f"{name}[{number}]"
                error.field = where if error.field is None else f"{where}.{error.field}"
                answers.append(Problem.of(error))
        return answers

    def _check_left(self, left: int) -> None:
        """Refuse a request, if so many candidates are left after it for others of the same body."""
        if left < 0:
            text = f"up to here there are more than {self._serve.max_candidates:,} candidates"
            raise RequestError(INVALID, f"{text}: serve.max_candidates", "items")

    def _scores(self, request: ScoreRequest, challenger: str | None) -> ScoreAnswer:
        """Score the candidates of one user."""
        partitions = {self._follower.partition_of(key) for key in request.keys}
        if len(partitions) > 1:
            text = f"their keys are of the partitions {', '.join(map(str, sorted(partitions)))}"
            raise RequestError(INVALID, f"{text}: make a request of each", "items")
        exploration = None if request.event_id is None else self._exploration
        if exploration is not None and challenger is not None:
            text = "candidates are drawn by the champion's scores: leave explore out, or ?challenger"
            raise RequestError(INVALID, text, "explore")
        try:
            scores = self._follower.score(
                partitions.pop(),
                request.candidates,
                challenger=challenger,
                explain=request.explain,
                variances=exploration is not None and exploration.needs_variances,
            )
        except PartitionNotReadyError as error:
            raise RequestError(503, str(error), retry_after=error.retry_after) from None
        except UnknownChallengerError as error:
            raise RequestError(404, str(error), "challenger") from None
        now = time.time_ns() // 1_000_000
        choice, explored = None, None
        if exploration is not None and request.event_id is not None:
            choice = choose(exploration, request.event_id, scores.scores, scores.variances)
            explored = LoggedChoice(
                by=exploration,
                event_id=request.event_id,
                chosen=choice.chosen,
                propensities=choice.propensities,
            )
        answer = ScoreAnswer.of(scores, now, challenger, choice)
        self._scored(scores, answer.age_ms)
        if self._log is not None:
            self._log.write(self._line(request, challenger, scores, now, explored))
        return answer

    def _line(
        self,
        request: ScoreRequest,
        challenger: str | None,
        scores: Scores,
        now: int,
        explored: LoggedChoice | None,
    ) -> ScoreLogLine:
        return ScoreLogLine(
            at=now,
            partition=scores.partition,
            epoch=scores.epoch,
            arithmetic=scores.arithmetic,
            model_version=scores.model_version,
            as_of=scores.as_of,
            tables=dict(scores.tables),
            challenger=challenger,
            time=request.time,
            ids=[list(each.ids) for each in request.candidates],
            features=[list(self._features(each)) for each in request.candidates],
            scores=scores.scores,
            explored=UNSET if explored is None else explored,
        )


def _content_type(headers: Mapping[bytes, bytes]) -> bytes:
    """Return the content type of a body, JSON if it is not said."""
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise RequestError(415, "bodies are not compressed: send it as it is", close=True)
    found = headers.get(b"content-type", JSON).partition(b";")[0].strip().lower()
    if found not in {JSON, NDJSON}:
        name = found.decode("latin-1")
        text = f"{name} is no type of requests: send content-type: {JSON.decode()} or {NDJSON.decode()}"
        raise RequestError(415, text, close=True)
    return found


def _challenger(query: bytes) -> str | None:
    if not query:
        return None
    try:
        pairs = parse_qsl(query.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=8)
    except ValueError:
        raise RequestError(400, "the query cannot be read: it is like ?challenger=NAME", close=True) from None
    if [name for name, _ in pairs] != ["challenger"]:
        name = next((name for name, _ in pairs if name != "challenger"), "challenger")
        raise RequestError(
            400, f"the query is {name}=..., once: it can only be ?challenger=NAME, once", close=True
        )
    return pairs[0][1]


async def _send(
    send: Send, status: int, content_type: bytes, body: bytes, more: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body)), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _send_problem(send: Send, error: RequestError, more: Sequence[tuple[bytes, bytes]] = ()) -> None:
    headers = [*more]
    if error.retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(1, round(error.retry_after))))
    if error.close:
        headers.append((b"connection", b"close"))
    await _send(send, error.status, PROBLEM, encode(Problem.of(error)), headers)


class Application:
    """The application of a follower.

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

    def __init__(
        self,
        follower: Scorer,
        config: Config,
        versions: Mapping[str, str],
        score_log: ScoreLog | None = None,
    ) -> None:
        self._follower = follower
        self._config = config
        self._versions = dict(versions)
        self._registry, self._metrics = follower_registry(
            lambda: follower.figures, score_log, config.serve.max_lag
        )
        self._scoring = Scoring(follower, config, score_log, self._scored)
        self._metrics.under_way.set_function(lambda: self._scoring.under_way)
        self._openapi = encode(document(config.stream.name, self._scoring.decoder))
        self._figures = follower.figures
        self._new_at = time.monotonic()
        answers: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/v1/model": self._model,
            "/livez": self._live,
            "/readyz": self._ready,
            "/metrics": self._scrape,
            "/openapi.json": self._document,
        }
        routes = [Route(SCORE, self._scoring, methods=["POST"])]
        routes += [Route(path, answer, methods=["GET"]) for path, answer in answers.items()]  # and so HEAD
        self._routed: ASGIApp = Starlette(
            routes=routes, exception_handlers={HTTPException: _refused, Exception: _failed}
        )
        self._paths = {SCORE, *answers}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and count it."""
        begun, status = time.perf_counter(), 0
        path = scope["path"]

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            if path == SCORE and scope["method"] == "POST":
                await self._scoring(scope, receive, counted)
            else:
                await self._routed(scope, receive, counted)
        except Exception:
            structlog.get_logger().exception("a request could not be answered", path=path)
            if not status:
                await _send_problem(counted, RequestError(500, "the follower failed: its log says why"))
        finally:
            route = path if path in self._paths else "other"
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - begun)

    def _scored(self, scores: Scores, age: int | None) -> None:
        self._metrics.candidates.observe(len(scores.scores))
        if unknown := sum(map(bool, scores.unknown)):
            self._metrics.unknown.inc(unknown)
        if age is not None:
            self._metrics.age.observe(age / 1000)

    async def _model(self, _: Request) -> Response:
        stream, group = self._config.stream.name, self._config.kafka.group
        return _json(ModelAnswer.of(self._follower.figures, stream, group, self._versions))

    async def _live(self, _: Request) -> Response:
        figures, now = self._follower.figures, time.monotonic()
        if figures is not self._figures:
            self._figures, self._new_at = figures, now
        age = now - self._new_at
        answer = LiveAnswer(age <= STOOD_STILL, round(age, 1), STOOD_STILL)
        return _json(answer, 200 if answer.alive else 503)

    async def _ready(self, _: Request) -> Response:
        max_lag = self._config.serve.max_lag
        answer = ReadyAnswer.of(self._follower.figures, max_lag, time.monotonic())
        return _json(answer, 200 if answer.ready else 503)

    async def _scrape(self, request: Request) -> Response:
        encoded, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encoded(self._registry), headers={"content-type": content_type, **_NO_STORE})

    async def _document(self, _: Request) -> Response:
        return Response(self._openapi, media_type="application/json")


_NO_STORE: Final = {"cache-control": "no-store"}


def _json(answer: object, status: int = 200) -> Response:
    return Response(encode(answer) + b"\n", status, headers=_NO_STORE, media_type="application/json")


async def _refused(_: Request, error: Exception) -> Response:
    """Answer a request that no route takes."""
    assert isinstance(error, HTTPException)
    problem = Problem.of(RequestError(error.status_code, f"{error.detail}: /openapi.json says what there is"))
    headers = {**(error.headers or {}), "content-type": PROBLEM.decode()}
    return Response(encode(problem), error.status_code, headers=headers)


async def _failed(_: Request, __: Exception) -> Response:
    problem = Problem.of(RequestError(500, "the follower failed: its log says why"))
    return Response(encode(problem), 500, headers={"content-type": PROBLEM.decode()})
