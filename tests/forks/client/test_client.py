"""The client, with invented followers."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx2
import pytest

from forks.client import Client, RefusedError, UnavailableError

ANSWER = {
    "partition": 0,
    "model_version": 9,
    "epoch": 0,
    "as_of": 5,
    "age_ms": 2,
    "items": [{"score": 0.5, "predicted": True, "probability": 0.62, "a later field": 1}],
}
PROBLEM = {"title": "Unprocessable", "status": 422, "detail": "no such thing", "field": "items[0].video_id"}
Handler = Callable[[httpx2.Request], httpx2.Response]


def client(*handlers: Handler, timeout: float = 5.0) -> Client:
    """A client of a follower for each handler."""
    of_host = {f"host{number}": handler for number, handler in enumerate(handlers)}
    transport = httpx2.MockTransport(lambda request: of_host[request.url.host](request))
    return Client([f"http://{host}/" for host in of_host], transport=transport, timeout=timeout)


def good(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json=ANSWER)


def away(_: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("refused")


def busy(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(503, json={"detail": "busy"}, headers={"retry-after": "1"})


def wrong(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(422, json=PROBLEM)


def test_a_request_is_what_a_follower_reads() -> None:
    seen: list[httpx2.Request] = []

    def follower(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return good(request)

    with client(follower) as asked:
        scores = asked.score({"user_id": 7}, [{"video_id": 1}], time=5, explain=True, challenger="wider")
    assert (scores.model_version, scores.items[0].probability, scores.items[0].unknown) == (9, 0.62, ())
    [request] = seen
    assert str(request.url) == "http://host0/v1/score?challenger=wider"
    assert json.loads(request.content) == {
        "user_id": 7,
        "items": [{"video_id": 1}],
        "time": 5,
        "explain": True,
    }


@pytest.mark.parametrize("failing", [away, busy])
def test_another_follower_is_asked_at_once(failing: Handler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forks.client.client.sleep", lambda _: pytest.fail("it waits"))
    with client(failing, good) as asked:
        for _ in range(10):
            assert asked.score({"user_id": 7}, [{"video_id": 1}]).model_version == 9


def test_a_follower_that_was_busy_is_asked_again() -> None:
    answers = iter([busy, away, good])

    def follower(request: httpx2.Request) -> httpx2.Response:
        return next(answers)(request)

    with client(follower) as asked:
        assert asked.score({"user_id": 7}, [{"video_id": 1}]).model_version == 9


def test_a_wrong_request_is_not_sent_again() -> None:
    count = 0

    def follower(request: httpx2.Request) -> httpx2.Response:
        nonlocal count
        count += 1
        return wrong(request)

    with client(follower, follower) as asked, pytest.raises(RefusedError, match="no such thing") as raised:
        asked.score({"user_id": 7}, [{}])
    assert (raised.value.status, raised.value.field, count) == (422, "items[0].video_id", 1)


def test_time_is_limited() -> None:
    with client(away, busy, timeout=0.3) as asked, pytest.raises(UnavailableError, match=r"within 0\.3 s"):
        asked.score({"user_id": 7}, [{"video_id": 1}])


def test_several_requests_are_answered_each_by_itself() -> None:
    def follower(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={"answers": [ANSWER, PROBLEM]})

    with client(follower) as asked:
        first, second = asked.score_many([({"user_id": 7}, [{"video_id": 1}]), ({"user_id": 8}, [{}])])
    assert not isinstance(first, RefusedError)
    assert first.items[0].score == 0.5
    assert isinstance(second, RefusedError)
    assert second.status == 422


NOT_READY = {"title": "Service Unavailable", "status": 503, "detail": "it is being restored"}
TWO = [({"user_id": 7}, [{"video_id": 1}]), ({"user_id": 8}, [{"video_id": 2}])]


def test_those_that_were_not_ready_are_sent_again_alone() -> None:
    sent: list[list[int]] = []

    def follower(request: httpx2.Request) -> httpx2.Response:
        sent.append([each["user_id"] for each in json.loads(request.content)["requests"]])
        ready = len(sent) > 2
        answers = {7: ANSWER, 8: ANSWER | {"partition": 1} if ready else NOT_READY}
        return httpx2.Response(200, json={"answers": [answers[user] for user in sent[-1]]})

    with client(follower) as asked:
        found = asked.score_many(TWO)
    assert sent == [[7, 8], [8], [8]]
    assert [getattr(each, "partition", None) for each in found] == [0, 1]


@pytest.mark.parametrize("later", [away, busy])
def test_those_that_are_never_ready_are_refused_once_the_time_is_over(later: Handler) -> None:
    first = True

    def follower(request: httpx2.Request) -> httpx2.Response:
        nonlocal first
        if not first:
            return later(request)
        first = False
        return httpx2.Response(200, json={"answers": [ANSWER, NOT_READY]})

    with client(follower, timeout=0.3) as asked:
        found = asked.score_many(TWO)
    assert not isinstance(found[0], RefusedError)
    assert isinstance(found[1], RefusedError)
    assert (found[1].status, found[1].detail) == (503, "it is being restored")


def test_the_words_of_a_proxy_are_shown() -> None:
    def proxy(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(403, text="<html>forbidden</html>")

    with client(proxy) as asked, pytest.raises(RefusedError, match="forbidden"):
        asked.score({"user_id": 7}, [{"video_id": 1}])


def test_a_single_address_is_no_list() -> None:
    with pytest.raises(ValueError, match="urls is a list"):
        Client("http://a")


def test_a_candidate_is_drawn_where_it_is_asked_for() -> None:
    seen: list[httpx2.Request] = []
    drawn = {"chosen": 0, "target_propensity": 1.0, "estimate": 0.6, "target_estimate": 0.7}

    def follower(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        answer = good(request).json()
        answer["items"][0]["propensity"] = 0.25
        return httpx2.Response(200, json=answer | drawn)

    with client(follower) as asked:
        scores = asked.score({"user_id": 7, "event_id": "e1"}, [{"video_id": 1}], explore=True)
    assert json.loads(seen[0].content) == {
        "user_id": 7,
        "event_id": "e1",
        "items": [{"video_id": 1}],
        "explore": True,
    }
    assert {name: getattr(scores, name) for name in drawn} == drawn
    assert scores.items[0].propensity == 0.25
    with client(good) as asked:
        plain = asked.score({"user_id": 7}, [{"video_id": 1}])
    assert (plain.chosen, plain.items[0].propensity) == (None, None)
