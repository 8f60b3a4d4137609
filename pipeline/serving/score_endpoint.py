"""Answer requests for scores: read a body within its limits, score each user's candidates, log answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, aclosing
from typing import Final, Protocol
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from pipeline.config.settings import Config
from pipeline.records.encoding import encode
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction
from pipeline.serving.answers import FollowerFigures, PartitionNotReadyError, Scores, UnknownChallengerError
from pipeline.serving.candidates import CandidateType
from pipeline.serving.exploration import Exploration, choose
from pipeline.serving.metrics import RequestMetrics
from pipeline.serving.score_log import LoggedChoice, ScoreLog, ScoreLogLine
from pipeline.serving.scoring_answers import Problem, ScoreAnswer, ScoreAnswers
from pipeline.serving.scoring_requests import INVALID, RequestDecoder, RequestError, ScoreRequest

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
BUSY_RETRY: Final = 1.0
"""Seconds after which a follower that has too much to do may be asked again."""


class LentModel(Protocol):
    """What answers need of a model: see `pipeline.serving.served_model.ServedModel`."""

    def score_candidates(
        self,
        interactions: Sequence[Interaction],
        challenger: str | None = None,
        *,
        explain: bool = False,
        variances: bool = False,
    ) -> Scores: ...


class ModelLender(Protocol):
    """What answers need of a follower: see `pipeline.serving.follower.Follower`."""

    @property
    def figures(self) -> FollowerFigures: ...

    def partition_of(self, key: Id) -> int: ...

    def lend_model(self, partition: int) -> AbstractContextManager[LentModel]: ...


class ScoreEndpoint:
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
    metrics
        Where candidates are counted.

    Attributes
    ----------
    decoder
        Decodes requests.
    under_way
        The number of requests that are not answered yet.
    """

    def __init__(
        self, follower: ModelLender, config: Config, score_log: ScoreLog | None, metrics: RequestMetrics
    ) -> None:
        self.decoder = RequestDecoder(config.stream, config.serve, config.join)
        self.under_way = 0
        self._follower = follower
        self._serve = config.serve
        self._log = score_log
        self._metrics = metrics
        self._features = CandidateType.of(config.stream).features
        self._exploration = Exploration.of(config.serve, config.labels)

    async def answer(self, request: Request) -> Response:
        """Answer a request.

        Raises
        ------
        RequestError
            There is no answer.
        """
        self.under_way += 1
        try:
            await asyncio.sleep(0)  # so that all requests that are there are counted before one is scored
            if self.under_way > self._serve.max_concurrency:
                text = f"{self.under_way - 1} requests are under way, as many as serve.max_concurrency allows"
                raise RequestError(503, text, retry_after=BUSY_RETRY, close=True)
            content_type = _content_type(request)
            challenger = _challenger(request.scope["query_string"])
            body = await self._body(request)
            make = self._lines if content_type == NDJSON else self._object
            return Response(await make(body, challenger), media_type=content_type)
        finally:
            self.under_way -= 1

    async def _body(self, request: Request) -> bytes:
        """Return the body, which is refused as soon as it is too long or too late."""
        limit = self._serve.max_body
        too_long = RequestError(413, f"the body has more than {limit:,} bytes: serve.max_body", close=True)
        if int(request.headers.get("content-length", 0)) > limit:  # h11 has checked that it is a number
            raise too_long
        body = bytearray()
        try:
            async with asyncio.timeout(self._serve.timeout / 1000), aclosing(request.stream()) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > limit:
                        raise too_long
        except TimeoutError:
            text = f"the body did not arrive within {self._serve.timeout} ms: serve.timeout"
            raise RequestError(408, text, close=True) from None
        except ClientDisconnect:
            raise RequestError(400, "the connection ended before the body did", close=True) from None
        return bytes(body)

    async def _lines(self, body: bytes, challenger: str | None) -> bytes:
        lines = [line for line in body.split(b"\n") if line.strip()]
        if len(lines) > self._serve.max_candidates:
            raise RequestError(INVALID, f"{len(lines):,} lines are more than {self._serve.max_candidates:,}")
        return b"".join([encode(each) + b"\n" for each in await self._each(lines, challenger, "lines")])

    async def _object(self, body: bytes, challenger: str | None) -> bytes:
        found = self.decoder.decode_body(body)
        if isinstance(found, ScoreRequest):
            return encode(self._scored(found, challenger))
        return encode(ScoreAnswers(await self._each(found, challenger, "requests")))

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
                request = self.decoder.decode(text)
                left -= len(request.candidates)
                self._check_left(left)
                answers.append(self._scored(request, challenger))
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

    def _scored(self, request: ScoreRequest, challenger: str | None) -> ScoreAnswer:
        """Score the candidates of one user, draw one of them if that is asked for, and log both."""
        partitions = {self._follower.partition_of(key) for key in request.keys}
        if len(partitions) > 1:
            text = f"their keys are of the partitions {', '.join(map(str, sorted(partitions)))}"
            raise RequestError(INVALID, f"{text}: make a request of each", "items")
        exploration = None if request.event_id is None else self._exploration
        if exploration is not None and challenger is not None:
            text = "candidates are drawn by the champion's scores: leave explore out, or ?challenger"
            raise RequestError(INVALID, text, "explore")
        variances = exploration is not None and exploration.needs_variances
        try:
            with self._follower.lend_model(partitions.pop()) as model:
                scores = model.score_candidates(
                    request.candidates, challenger, explain=request.explain, variances=variances
                )
        except PartitionNotReadyError as error:
            raise RequestError(503, str(error), retry_after=error.retry_after) from None
        except UnknownChallengerError as error:
            raise RequestError(404, str(error), "challenger") from None
        choice, explored = None, None
        if exploration is not None and request.event_id is not None:
            choice = choose(exploration, request.event_id, scores.scores, scores.variances)
            explored = LoggedChoice(
                by=exploration,
                event_id=request.event_id,
                chosen=choice.chosen,
                propensities=choice.propensities,
            )
        now = time.time_ns() // 1_000_000
        answer = ScoreAnswer.of(scores, now, challenger, choice)
        self._metrics.note_answer(scores, answer.age_ms)
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


def _content_type(request: Request) -> str:
    """Return the content type of a body, JSON if it is not said."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RequestError(415, "bodies are not compressed: send it as it is", close=True)
    found = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if found not in {JSON, NDJSON}:
        text = f"{found} is no type of requests: send content-type: {JSON} or {NDJSON}"
        raise RequestError(415, text, close=True)
    return found


def _challenger(query: bytes) -> str | None:
    """Return the challenger that is asked for; Starlette's own reader takes a name without a value."""
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
