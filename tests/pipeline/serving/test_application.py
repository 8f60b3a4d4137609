"""What is answered over HTTP, in memory and by a follower that has no model."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from pipeline.config.settings import Config, Serve
from pipeline.config.stream import KUAIREC, Stream
from pipeline.serving.answers import PartitionNotReadyError
from pipeline.serving.application import application
from pipeline.serving.exploration import Exploration, Strategy, choose
from pipeline.serving.score_log import LoggedChoice, ScoreLog, ScoreLogLine, read_score_log
from tests.support.examples import examples
from tests.support.serving import DELIVERIES, NOT_READY, FakeFollower, figures, score_of

SMALL = Serve(max_body=2_000, max_candidates=3, max_concurrency=2)
ONE = {"user_id": 7, "items": [{"video_id": 1}]}


def client(follower: FakeFollower, config: Config | None = None, log: ScoreLog | None = None) -> TestClient:
    app = application(follower, config or Config(), {"forks-stream": "0"}, log)
    return TestClient(app, raise_server_exceptions=True)


@pytest.fixture
def follower() -> FakeFollower:
    return FakeFollower()


def problem(answer: Any) -> tuple[int, str | None]:
    """Status and field of a refusal."""
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["title"]
    assert body["detail"]
    return answer.status_code, body.get("field")


def test_candidates_are_scored_in_their_order(follower: FakeFollower) -> None:
    request = {"user_id": 7, "items": [{"video_id": 3}, {"video_id": "b"}], "time": 5}
    answer = client(follower).post("/v1/score", json=request)
    assert answer.status_code == 200
    body = answer.json()
    assert [item["score"] for item in body["items"]] == [score_of((7, 3)), score_of((7, "b"))]
    assert all(item["predicted"] and item["probability"] == 0.5 for item in body["items"])
    assert (body["partition"], body["model_version"], body["epoch"], body["as_of"]) == (1, 41, 0, 1_000)
    assert body["age_ms"] == pytest.approx(time.time() * 1000 - 1_000, abs=60_000)
    assert not {"challenger", "unknown", "explain"} & {*body, *body["items"][0]}
    [asked] = follower.asked
    assert [(each.ids, each.timestamp) for each in asked] == [((7, 3), 5), ((7, "b"), 5)]


def test_without_a_time_candidates_are_of_now(follower: FakeFollower) -> None:
    client(follower).post("/v1/score", json=ONE)
    assert follower.asked[0][0].timestamp == pytest.approx(time.time() * 1000, abs=60_000)


def test_who_is_unknown_is_named_and_a_challenger_too(follower: FakeFollower) -> None:
    body = client(follower).post("/v1/score?challenger=wider", json=ONE | {"user_id": "new"}).json()
    assert body["items"][0]["unknown"] == ["user_id"]
    assert body["challenger"] == "wider"


def test_scores_are_explained_on_request(follower: FakeFollower) -> None:
    [item] = client(follower).post("/v1/score", json=ONE | {"explain": True}).json()["items"]
    assert item["explain"] == {
        "terms": [{"kind": "bias", "name": "bias", "value": 0.5}],
        "nearest": [{"distance": 0.25, "kernel": 0.75, "outcome": 7}],
    }


def test_an_item_wins_over_what_stands_beside(follower: FakeFollower) -> None:
    request = {"user_id": 7, "video_id": 9, "items": [{"video_id": 3}, {}, {"user_id": 8, "more": [1]}]}
    assert client(follower).post("/v1/score", json=request).status_code == 200
    assert [each.ids for each in follower.asked[0]] == [(7, 3), (7, 9), (8, 9)]


def nested_stream() -> Stream:
    """Its fields are nested, and some are called as those of a request."""
    return Stream.model_validate(
        {
            "name": "orders",
            "entities": {"courier": "/courier/id", "item": "/items/id"},
            "interactions": {"topic": "in", "event_id": "/id", "time": "/at", "time_unit": "iso8601"},
            "labels": {
                "topic": "out",
                "event_id": "/id",
                "time": "/at",
                "value": "/late",
                "value_kind": "boolean",
            },
            "target": {"name": "late", "above": 0.5, "cap": 1.0, "scale": 1.0},
            "features": {
                "rank": {"kind": "number", "field": "/courier/rank", "missing": 0.5},
                "hour": {"kind": "hour"},
                "kind": {"kind": "category", "field": "/time"},
                "place": {"kind": "vector", "field": "/at_place", "length": 2},
            },
        }
    )


def test_nested_fields_are_merged_and_names_of_requests_stand_in_items(follower: FakeFollower) -> None:
    one: dict[str, Any] = {"courier": {"id": 7}, "at_place": [1, 2.5], "time": 86_400_000}
    items = [
        {"items": {"id": "a"}, "time": "lunch"},
        {"items": {"id": "b"}, "time": 3, "courier": {"rank": 4}, "at_place": [0, 0]},
        {"items": {"id": "c"}, "time": "x", "courier": {"rank": None, "id": 8, "name": "Zoe"}},
    ]
    config = Config(stream=nested_stream())
    answer = client(follower, config).post("/v1/score", json=one | {"items": items})
    assert answer.status_code == 200, answer.text
    [asked] = follower.asked
    assert [each.ids for each in asked] == [(7, "a"), (7, "b"), (8, "c")]
    found = [tuple(getattr(each, f"feature_{number}") for number in (0, 2, 3)) for each in asked]
    assert found == [(None, "lunch", [1.0, 2.5]), (4.0, 3, [0.0, 0.0]), (None, "x", [1.0, 2.5])]
    assert {each.timestamp for each in asked} == {86_400_000}


def test_a_stream_without_entities_is_keyed_by_the_event(follower: FakeFollower) -> None:
    definition = KUAIREC.model_dump(exclude={"entities"}) | {
        "features": {"n": {"kind": "number", "field": "/n"}}
    }
    asked = client(follower, Config(stream=Stream.model_validate(definition)))
    follower.failure = NOT_READY  # the fake one scores by ids
    assert asked.post("/v1/score", json={"event_id": "e", "items": [{"n": 1}, {"n": 2}]}).status_code == 503
    assert problem(asked.post("/v1/score", json={"items": [{"n": 1}]})) == (422, "items[0].event_id")


WRONG: list[tuple[object, str | None]] = [
    ([], None),
    ({}, "items"),
    (3, None),
    ({"user_id": 7}, "items"),
    ({"user_id": 7, "items": []}, "items"),
    ({"user_id": 7, "items": {}}, "items"),
    ({"user_id": 7, "items": None}, "items"),
    ({"user_id": 7, "items": [3]}, "items[0]"),
    ({"user_id": 7, "items": [{"video_id": 1}] * 4}, "items"),
    ({"user_id": 7, "items": [{"video_id": 1}, {}]}, "items[1].video_id"),
    ({"items": [{"video_id": 1}]}, "items[0].user_id"),
    ({"user_id": None, "items": [{"video_id": 1}]}, "user_id"),
    ({"user_id": 7, "items": [{"video_id": 1}, {"video_id": None}]}, "items[1].video_id"),
    ({"user_id": 7, "items": [{"video_id": 1.5}]}, "items[0].video_id"),
    ({"user_id": 7, "items": [{"video_id": True}]}, "items[0].video_id"),
    ({"user_id": "", "items": [{"video_id": 1}]}, "user_id"),
    ({"user_id": "a" * 257, "items": [{"video_id": 1}]}, "user_id"),
    ({"user_id": 2**63, "items": [{"video_id": 1}]}, "user_id"),
    ({"user_id": 7, "items": [{"video_id": 1, "video_duration": -1}]}, "items[0].video_duration"),
    (ONE | {"time": -1}, "time"),
    (ONE | {"time": 1.5}, "time"),
    (ONE | {"time": "2026-01-01"}, "time"),
    (ONE | {"time": 2**53}, "time"),
    (ONE | {"explain": 1}, "explain"),
    (ONE | {"tme": 5}, "tme"),
    (ONE | {"requests": [ONE]}, "requests"),
    ({"requests": []}, "requests"),
    ({"requests": {}}, "requests"),
    ({"requests": [ONE] * 4}, "requests"),
    ({"user_id": 7, "items": [{"video_id": 1}, {"user_id": 88, "video_id": 1}]}, "items"),
]


@pytest.mark.parametrize(("body", "field"), WRONG)
def test_a_wrong_body_is_refused_and_its_field_named(
    follower: FakeFollower, body: object, field: str | None
) -> None:
    answer = client(follower, Config(serve=SMALL)).post("/v1/score", json=body)
    assert problem(answer) == (422, field)
    assert not follower.asked


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"user_id": 7, "items": [{"vi',
        b"\xff\xfe",
        b"nonsense",
        b'{"items":[{"x":' + b"[" * 1_900,
    ],
)
def test_what_is_no_json_is_refused(follower: FakeFollower, text: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = client(follower, Config(serve=SMALL)).post("/v1/score", content=text, headers=headers)
    assert problem(answer) == (400, None)


def test_each_of_several_requests_is_answered_by_itself(follower: FakeFollower) -> None:
    requests = [ONE, {"user_id": 8, "items": [{"video_id": "x"}, {}]}, 5, ONE | {"user_id": 9}]
    answer = client(follower).post("/v1/score", json={"requests": requests})
    assert answer.status_code == 200
    first, second, third, fourth = answer.json()["answers"]
    assert first["items"][0]["score"] == score_of((7, 1))
    assert (second["status"], second["field"]) == (422, "requests[1].items[1].video_id")
    assert (third["status"], third["field"]) == (422, "requests[2]")
    assert fourth["items"][0]["score"] == score_of((9, 1))


def test_lines_are_answered_line_by_line(follower: FakeFollower) -> None:
    text = b"\n".join([json.dumps(ONE).encode(), b"", b'{"user_id":8}', json.dumps(ONE).encode()])
    headers = {"content-type": "application/x-ndjson; charset=utf-8"}
    answer = client(follower).post("/v1/score", content=text, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    first, second, third = map(json.loads, answer.text.splitlines())
    assert first["items"] == third["items"]
    assert (second["status"], second["field"]) == (422, "lines[1].items")


def test_candidates_are_counted_over_all_requests_of_a_body(follower: FakeFollower) -> None:
    two = {"user_id": 7, "items": [{"video_id": 1}, {"video_id": 2}]}
    body = {"requests": [two, two, ONE]}
    answers = client(follower, Config(serve=SMALL)).post("/v1/score", json=body).json()["answers"]
    assert [each.get("status") for each in answers] == [None, 422, 422]


def test_a_partition_that_is_not_ready_says_when_to_ask_again(follower: FakeFollower) -> None:
    follower.failure = PartitionNotReadyError(1, "it is being restored", 2.4)
    answer = client(follower).post("/v1/score", json=ONE)
    assert problem(answer) == (503, None)
    assert answer.headers["retry-after"] == "2"
    assert "partition 1 is not ready: it is being restored" in answer.json()["detail"]
    [one] = client(follower).post("/v1/score", json={"requests": [ONE]}).json()["answers"]
    assert (one["status"], one["retry_after"]) == (503, 2.4)


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("challenger=none", 404, "challenger"),
        ("challenger=", 404, "challenger"),
        ("chalenger=wider", 400, None),
        ("challenger=wider&challenger=wider", 400, None),
        ("challenger=wider&x=1", 400, None),
        ("challenger", 400, None),
        ("&".join(["a=b"] * 100), 400, None),
        ("challenger=%ff", 404, "challenger"),
    ],
)
def test_a_wrong_query_is_refused(follower: FakeFollower, query: str, status: int, field: str | None) -> None:
    assert problem(client(follower).post(f"/v1/score?{query}", json=ONE)) == (status, field)
    assert not follower.asked


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "text/plain"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
)
def test_another_content_type_is_refused(follower: FakeFollower, headers: Mapping[str, str]) -> None:
    answer = client(follower).post("/v1/score", content=json.dumps(ONE), headers=dict(headers))
    assert problem(answer) == (415, None)


@pytest.mark.parametrize("chunks", [1, 5])
def test_a_body_that_is_too_long_is_refused(follower: FakeFollower, chunks: int) -> None:
    asked = client(follower, Config(serve=SMALL))
    headers = {"content-type": "application/json"}
    text = b" " * 2_000 + json.dumps(ONE).encode()
    content: Any = text if chunks == 1 else iter([text[:1_000], text[1_000:]])
    answer = asked.post("/v1/score", content=content, headers=headers)
    assert problem(answer) == (413, None)
    assert answer.headers["connection"] == "close"


def test_other_paths_and_methods_are_refused(follower: FakeFollower) -> None:
    asked = client(follower)
    assert problem(asked.get("/v1/score")) == (405, None)
    assert asked.get("/v1/score").headers["allow"] == "POST"
    assert problem(asked.post("/v1/model")) == (405, None)
    assert problem(asked.get("/v2/score")) == (404, None)
    assert asked.head("/livez").status_code == 200


def test_a_fault_of_the_follower_is_no_end_of_it(follower: FakeFollower) -> None:
    follower.failure = ArithmeticError("a bug")
    asked = client(follower)
    answer = asked.post("/v1/score", json=ONE)
    assert problem(answer) == (500, None)
    assert "bug" not in answer.text
    follower.failure = None
    assert asked.post("/v1/score", json=ONE).status_code == 200


def test_more_requests_than_are_allowed_are_refused_before_one_is_scored(follower: FakeFollower) -> None:
    app = application(follower, Config(serve=SMALL), {})
    sent: list[list[Any]] = []

    async def ask() -> None:
        messages: list[Any] = []
        sent.append(messages)
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/score",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
        }

        async def receive() -> Any:
            return {"type": "http.request", "body": json.dumps(ONE).encode()}

        async def send(message: Any) -> None:
            messages.append(message)

        await app(scope, receive, send)

    async def ask_at_once() -> None:
        await asyncio.gather(*[ask() for _ in range(5)])

    asyncio.run(ask_at_once())
    statuses = [messages[0]["status"] for messages in sent]
    assert sorted(statuses) == [200, 200, 503, 503, 503]
    headers = [dict(messages[0]["headers"]) for messages in sent if messages[0]["status"] == 503]
    assert all(each[b"retry-after"] == b"1" for each in headers)
    asyncio.run(ask())
    assert sent[-1][0]["status"] == 200


def test_readiness_follows_the_partitions(follower: FakeFollower) -> None:
    asked = client(follower)
    assert asked.get("/readyz").status_code == 200
    cases: list[tuple[dict[str, Any], str]] = [
        ({"state": "restoring", "records_left": 12}, "restoring"),
        ({"state": "failed", "reason": "offsets are lost"}, "failed"),
        ({"current_at": None}, "behind"),
        ({"current_at": time.monotonic() - 60.0, "lag": 5}, "behind"),
    ]
    for changed, code in cases:
        follower.figures = figures(**changed)
        answer = asked.get("/readyz")
        assert answer.status_code == 503
        assert [reason["code"] for reason in answer.json()["reasons"]] == [code]
    follower.figures = figures()._replace(partitions=())
    assert [reason["code"] for reason in asked.get("/readyz").json()["reasons"]] == ["starting"]


def test_a_follower_whose_figures_stand_still_is_dead(
    follower: FakeFollower, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = client(follower)
    assert asked.get("/livez").status_code == 200
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 1_000.0)
    assert asked.get("/livez").status_code == 503
    follower.figures = figures()
    assert asked.get("/livez").status_code == 200


def test_the_model_is_shown(follower: FakeFollower) -> None:
    body = client(follower).get("/v1/model").json()
    assert (body["stream"], body["group"], body["brokers"]) == ("kuairec", "forks", None)
    [partition] = body["partitions"]
    assert (partition["model_version"], partition["challengers"]) == (41, ["wider"])
    assert partition["settings"] == {"learner.budget": "100"}


def test_what_is_asked_is_counted(follower: FakeFollower) -> None:
    asked = client(follower)
    asked.post("/v1/score", json=ONE | {"user_id": "new"})
    asked.post("/v1/score", json={})
    asked.get("/nowhere")
    text = asked.get("/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    found = {
        (sample.labels["route"], sample.labels["status"]): sample.value
        for sample in families["forks_serve_requests"].samples
        if sample.name.endswith("_total")
    }
    assert found == {("/v1/score", "200"): 1, ("/v1/score", "422"): 1, ("other", "404"): 1}
    [unknown] = [
        sample.value
        for sample in families["forks_serve_unknown_candidates"].samples
        if sample.name.endswith("_total")
    ]
    assert unknown == 1
    assert families["forks_serve_model_version"].samples[0].value == 41


def test_answers_are_logged_with_what_an_audit_needs(follower: FakeFollower, tmp_path: Path) -> None:
    log = ScoreLog(tmp_path / "scores")
    config = Config(stream=DELIVERIES)
    around = {"courier": "c", "distance_km": 1.25, "dishes": 3, "rain": True, "time": 5}
    request = around | {"items": [{"restaurant": 1}, {"restaurant": "r", "dishes": 1}]}
    asked = client(follower, config, log)
    body = asked.post("/v1/score?challenger=wider", json=request).json()
    asked.post("/v1/score", json={})
    asked.post("/v1/score", json={"requests": [request, {}, request]})
    log.close()
    lines = [each.line for each in read_score_log(tmp_path / "scores")]
    assert len(lines) == 3
    line = lines[0]
    assert isinstance(line, ScoreLogLine)
    assert (line.challenger, line.partition, line.model_version, line.time) == ("wider", 1, 41, 5)
    assert line.scores == [item["score"] for item in body["items"]]
    logged = [(each.ids, each.timestamp) for each in line.candidates(DELIVERIES)]
    assert logged == [(each.ids, each.timestamp) for each in follower.asked[0]]
    assert line.features == [[1.25, 3.0, True], [1.25, 1.0, True]]


def test_the_description_names_every_operation_once(follower: FakeFollower) -> None:
    document = client(follower).get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    assert {*document["paths"]} == {"/v1/score", "/v1/model", "/livez", "/readyz", "/metrics"}
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    operations = [each for path in document["paths"].values() for each in path.values()]
    assert len({each["operationId"] for each in operations}) == len(operations)


single = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
nested = single | st.lists(single, max_size=3) | st.dictionaries(st.text(max_size=5), single, max_size=3)
values = single | st.lists(nested, max_size=3) | st.dictionaries(st.text(max_size=5), nested, max_size=3)
keys = st.sampled_from(["user_id", "video_id", "video_duration", "items", "time", "explain", "requests", "x"])
item = st.dictionaries(keys, values, max_size=3) | st.fixed_dictionaries({"video_id": st.integers(0, 5)})
bodies = st.dictionaries(keys, values, max_size=4) | st.fixed_dictionaries(
    {"user_id": st.integers() | values, "items": st.lists(item | values, max_size=4)},
    optional={"time": values, "explain": values, "requests": values, "video_id": values},
)
texts = st.binary(max_size=60) | bodies.map(lambda body: json.dumps(body).encode())
_asked = client(FakeFollower(), Config(serve=SMALL))


@examples(400)
@given(texts, st.integers(0, 60), st.sampled_from(["application/json", "application/x-ndjson"]))
def test_whatever_a_body_is_it_is_answered_or_refused(text: bytes, cut: int, content_type: str) -> None:
    content = text[: len(text) - cut] if cut < 20 else text
    answer = _asked.post("/v1/score", content=content, headers={"content-type": content_type})
    assert answer.status_code in {200, 400, 422}, answer.text
    if answer.status_code != 200:
        problem(answer)


scalars = st.integers(-(2**63), 2**63 - 1) | st.text(min_size=1, max_size=5)


@examples(200)
@given(st.data())
def test_merging_is_that_of_plain_dictionaries(data: st.DataObject) -> None:
    """Against an oracle: each item updates a copy of what stands beside."""
    field = {"user_id": scalars, "video_id": scalars}
    beside = data.draw(st.fixed_dictionaries({}, optional=field))
    items = data.draw(st.lists(st.fixed_dictionaries({}, optional=field), min_size=1, max_size=3))
    follower = FakeFollower()
    follower.partition_of = lambda key: 0  # type: ignore[method-assign]  # noqa: ARG005 - its name is the method's
    answer = client(follower, Config(serve=SMALL)).post("/v1/score", json=beside | {"items": items})
    merged = [beside | each for each in items]
    if all({"user_id", "video_id"} <= each.keys() for each in merged):
        assert answer.status_code == 200
        assert [each.ids for each in follower.asked[0]] == [
            (each["user_id"], each["video_id"]) for each in merged
        ]
    else:
        assert problem(answer)[0] == 422


def exploring(follower: FakeFollower, *, log: ScoreLog | None = None, **changed: Any) -> TestClient:
    serve = {"explore": "epsilon-greedy", "epsilon": 0.2} | changed
    stream = serve.pop("stream", KUAIREC)
    return client(follower, Config.model_validate({"serve": serve, "stream": stream}), log)


THREE = {"user_id": 7, "items": [{"video_id": 1}, {"video_id": 2}, {"video_id": 3}]}


@pytest.mark.parametrize("strategy", ["epsilon-greedy", "thompson"])
def test_a_candidate_is_drawn_where_it_is_asked_for(
    strategy: Strategy, follower: FakeFollower, tmp_path: Path
) -> None:
    log = ScoreLog(tmp_path / "scores")
    http = exploring(follower, log=log, explore=strategy)
    plain = http.post("/v1/score", json=THREE)
    asked = http.post("/v1/score", json=THREE | {"explore": True, "event_id": "e1"}).json()
    by = Exploration(strategy, 0.2, 1.0, 0)
    scores = [item["score"] for item in asked["items"]]
    choice = choose(by, "e1", scores, [0.25] * 3)
    assert [item.pop("propensity") for item in asked["items"]] == choice.propensities
    assert asked.pop("chosen") == choice.chosen
    assert asked.pop("target_propensity") == float(choice.chosen == choice.greedy)
    assert asked.pop("estimate") == asked.pop("target_estimate") == 0.5
    assert asked | {"age_ms": 0} == plain.json() | {"age_ms": 0}
    log.close()
    unexplored, explored = [each.line for each in read_score_log(tmp_path / "scores")]
    assert isinstance(unexplored, ScoreLogLine)
    assert isinstance(explored, ScoreLogLine)
    assert not unexplored.explored
    assert explored.explored == LoggedChoice(
        by=by, event_id="e1", chosen=choice.chosen, propensities=choice.propensities
    )
    assert b"explored" not in (tmp_path / "scores").read_bytes().splitlines()[0]


def test_of_several_requests_each_explores_by_itself(follower: FakeFollower) -> None:
    requests = [THREE | {"explore": True, "event_id": 4}, THREE, THREE | {"explore": True}]
    first, second, third = (
        exploring(follower).post("/v1/score", json={"requests": requests}).json()["answers"]
    )
    assert "chosen" in first
    assert "chosen" not in second
    assert third["field"] == "requests[2].event_id"


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (THREE | {"explore": True}, "event_id"),
        (THREE | {"explore": True, "event_id": None}, "event_id"),
        (THREE | {"explore": True, "event_id": ""}, "event_id"),
        (THREE | {"explore": 1, "event_id": 4}, "explore"),
        (
            {"user_id": 7, "explore": True, "items": [{"video_id": n, "event_id": n} for n in range(2)]},
            "event_id",
        ),
    ],
)
def test_exploring_needs_the_id_of_one_event(
    request_: dict[str, Any], field: str, follower: FakeFollower
) -> None:
    assert problem(exploring(follower).post("/v1/score", json=request_)) == (422, field)


def test_a_challenger_does_not_explore(follower: FakeFollower) -> None:
    answer = exploring(follower).post(
        "/v1/score?challenger=wider", json=THREE | {"explore": True, "event_id": 4}
    )
    assert problem(answer) == (422, "explore")


def test_without_exploration_in_the_settings_nothing_explores(follower: FakeFollower) -> None:
    answer = client(follower).post("/v1/score", json=THREE | {"explore": True})
    assert problem(answer) == (422, "explore")
    assert "serve.explore" in answer.json()["detail"]
    assert problem(client(follower).post("/v1/score", json=THREE | {"event_id": 4})) == (422, "event_id")


def test_where_the_event_is_the_key_its_id_is_there_already(follower: FakeFollower) -> None:
    stream = KUAIREC.model_copy(update={"key": "event_id"})
    request = THREE | {"explore": True, "event_id": "e1"}
    answer = exploring(follower, stream=stream.model_dump()).post("/v1/score", json=request)
    assert answer.json()["chosen"] in range(3)
