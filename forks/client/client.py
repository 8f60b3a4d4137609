"""A client of several followers, which asks another one where one fails."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from forks.client.answers import Scores
from forks.client.errors import RefusedError, UnavailableError

try:
    import httpx2
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'forks.client needs httpx2: pip install "forks-stream[client]"', name=error.name
    ) from error

RETRIED: Final = frozenset({408, 502, 503, 504})
"""Statuses after which another follower, or the same one later, may answer."""
FIRST_PAUSE: Final = 0.02
"""Seconds to wait once every follower has failed; each further time twice as long, up to `LONGEST_PAUSE`."""
LONGEST_PAUSE: Final = 1.0


class _Problem(msgspec.Struct):
    detail: str = ""
    field: str | None = None


class _Answers(msgspec.Struct):
    answers: list[msgspec.Raw]


class _Status(msgspec.Struct):
    status: int | None = None


_scores: Final = msgspec.json.Decoder(Scores)
_problem: Final = msgspec.json.Decoder(_Problem)
_answers: Final = msgspec.json.Decoder(_Answers)
_status: Final = msgspec.json.Decoder(_Status)


class Client:
    """Asks followers for scores, over connections that are kept.

    A request changes nothing, so it may be sent again. Where a connection fails or a follower answers 408,
    502, 503 or 504, the next follower is asked at once. Once all have failed, the client waits: as long as
    `Retry-After` says if all say so, else for a time that doubles. One client may be used by several threads.

    Parameters
    ----------
    urls
        Addresses of followers of the same group, such as ``http://127.0.0.1:8080``. Requests begin with each
        in turn.
    timeout
        Seconds for a request with all its retries.
    attempt_timeout
        Seconds for one attempt.
    transport
        How requests are sent; None for over the network.

    Examples
    --------
    >>> import httpx2
    >>> def follower(request):
    ...     item = {"score": 0.5, "predicted": True, "probability": 0.62}
    ...     model = {"partition": 0, "model_version": 9, "epoch": 0, "as_of": 5, "age_ms": 2}
    ...     return httpx2.Response(200, json=model | {"items": [item]})
    >>> with Client(["http://a", "http://b"], transport=httpx2.MockTransport(follower)) as client:
    ...     scores = client.score({"user_id": 7}, [{"video_id": 1}])
    >>> scores.model_version, scores.items[0].score
    (9, 0.5)
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        timeout: float = 5.0,
        attempt_timeout: float = 1.0,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        if isinstance(urls, str) or not urls:
            raise ValueError("urls is a list of at least one address, like ['http://127.0.0.1:8080']")
        self._urls = [url.rstrip("/") for url in urls]
        self._timeout = timeout
        self._attempt_timeout = attempt_timeout
        self._turn = itertools.count(random.randrange(len(self._urls)))
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=60.0)
        self._http = httpx2.Client(transport=transport, limits=limits, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def score(
        self,
        context: Mapping[str, Any],
        items: Sequence[Mapping[str, Any]],
        *,
        time: int | None = None,
        explain: bool = False,
        explore: bool = False,
        challenger: str | None = None,
    ) -> Scores:
        """Return the scores of candidates, in their order.

        Parameters
        ----------
        context
            What all candidates have in common, such as the user's id, by the stream's names; to explore, also
            the id of the event in which one of them will be shown.
        items
            What each candidate has by itself, such as the id of a video.
        time
            Time of the candidates in milliseconds; None for now.
        explain
            Whether the scores are to be explained.
        explore
            Whether a candidate is to be drawn, `Scores.chosen`. Not with a challenger.
        challenger
            The challenger that is to score; None for the champion.

        Raises
        ------
        RefusedError
            The request is wrong.
        UnavailableError
            No follower has answered in time.
        """
        body = self._request(context, items, time, explain=explain, explore=explore)
        return _scores.decode(self._post(body, challenger, monotonic() + self._timeout))

    def score_many(
        self,
        requests: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]],
        *,
        time: int | None = None,
        explain: bool = False,
        explore: bool = False,
        challenger: str | None = None,
    ) -> list[Scores | RefusedError]:
        """Return the scores of several users' candidates, each answered or refused by itself.

        One whose partition is not ready is sent again, with others like it, and is refused with 503 once the
        time is over.

        Parameters
        ----------
        requests
            Of each user, context and items as of `score`.
        time, explain, explore, challenger
            As of `score`, for all.

        Raises
        ------
        RefusedError
            There is nothing that could be answered.
        UnavailableError
            No follower has answered in time.
        """
        bodies = [self._request(*each, time, explain=explain, explore=explore) for each in requests]
        end, pause = monotonic() + self._timeout, FIRST_PAUSE
        found = self._post_many(bodies, challenger, end)
        while left := [number for number, each in enumerate(found) if _retriable(each)]:
            wait = pause * random.uniform(0.5, 1.0)
            if monotonic() + wait >= end:
                break
            sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE)
            try:
                again = self._post_many([bodies[number] for number in left], challenger, end)
            except UnavailableError:
                break
            for number, each in zip(left, again, strict=True):
                found[number] = each
        return found

    def _post_many(
        self, bodies: Sequence[object], challenger: str | None, end: float
    ) -> list[Scores | RefusedError]:
        """Return what became of each request."""
        texts = _answers.decode(self._post({"requests": bodies}, challenger, end)).answers
        return [
            _scores.decode(text)
            if (status := _status.decode(text).status) is None
            else _refused(status, bytes(text))
            for text in texts
        ]

    @staticmethod
    def _request(
        context: Mapping[str, Any],
        items: Sequence[Mapping[str, Any]],
        at: int | None,
        *,
        explain: bool,
        explore: bool,
    ) -> dict[str, Any]:
        body: dict[str, Any] = {**context, "items": items}
        if at is not None:
            body["time"] = at
        if explain:
            body["explain"] = True
        if explore:
            body["explore"] = True
        return body

    def _post(self, body: object, challenger: str | None, end: float) -> bytes:
        """Return the body of the first answer that is none to ask again after, until a moment."""
        text = msgspec.json.encode(body)
        params = {} if challenger is None else {"challenger": challenger}
        pause = FIRST_PAUSE
        while True:
            waits: list[float] = []
            problem = "no time is left"
            for _ in self._urls:
                url = self._urls[next(self._turn) % len(self._urls)]
                left = end - monotonic()
                if left <= 0:
                    raise UnavailableError(f"no follower has answered within {self._timeout:g} s: {problem}")
                try:
                    answer = self._http.post(
                        f"{url}/v1/score",
                        content=text,
                        params=params,
                        headers={"content-type": "application/json"},
                        timeout=min(left, self._attempt_timeout),
                    )
                except httpx2.TransportError as error:
                    problem = f"{url}: {error or type(error).__name__}"
                    waits.append(pause)
                    continue
                if answer.status_code == httpx2.codes.OK:
                    return answer.content
                refused = _refused(answer.status_code, answer.content)
                if answer.status_code not in RETRIED:
                    raise refused
                problem = f"{url}: {answer.status_code} {refused.detail}"
                waits.append(_retry_after(answer.headers.get("retry-after"), pause))
            wait = min(waits) * random.uniform(0.5, 1.0)  # clients that failed together ask apart
            if monotonic() + wait >= end:
                raise UnavailableError(f"no follower has answered within {self._timeout:g} s: {problem}")
            sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE)


def _retriable(found: Scores | RefusedError) -> bool:
    return isinstance(found, RefusedError) and found.status in RETRIED


def _refused(status: int, body: bytes) -> RefusedError:
    """Return what a follower, or a proxy before it, says against a request."""
    try:
        problem = _problem.decode(body)
    except msgspec.DecodeError:
        problem = _Problem(body[:200].decode(errors="replace"))
    return RefusedError(status, problem.detail or f"status {status}", problem.field)


def _retry_after(value: str | None, otherwise: float) -> float:
    """Return the seconds that a header names; a date, which followers do not send, counts as nothing."""
    return float(value) if value is not None and value.isascii() and value.isdecimal() else otherwise
