"""A follower beside its own description: requests made of the document, whose judgement the server shares."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, validators
from schemathesis import Case, GenerationMode, SerializationContext
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from pipeline.config.settings import Config, Join, Serve
from pipeline.config.stream import KUAIREC
from pipeline.serving.answers import FollowerFigures
from pipeline.serving.application import application
from tests.pipeline.serving.test_application import nested_stream
from tests.support.examples import examples
from tests.support.serving import DELIVERIES, FakeFollower, figures

CANDIDATES: Final = 5
NDJSON: Final = "application/x-ndjson"
NO_JSON: Final = object()
_types = Draft202012Validator.TYPE_CHECKER.redefine(
    "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
)
Validator: Any = validators.extend(  # type: ignore[no-untyped-call]  # lacks its types
    Draft202012Validator, type_checker=_types
)
"""1.0 is no integer to msgspec."""


class OnePartition(FakeFollower):
    """Keys of several partitions are refused, which no schema can say; figures are always new."""

    def partition_of(self, _: Any) -> int:
        return 0

    @property
    def figures(self) -> FollowerFigures:
        return figures()

    @figures.setter
    def figures(self, _: FollowerFigures) -> None:
        pass


@schemathesis.serializer(NDJSON)
def lines(_: SerializationContext, value: Any) -> bytes:
    """Return a request, twice: lines that are empty are none."""
    line = json.dumps(value).encode()
    return line + b"\n\n" + line


class Judge:
    """What a document says of requests and answers.

    A body with several requests is answered as a whole, and each of them by itself.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self._components = deepcopy(document["components"])
        schemas = self._components["schemas"]
        self._time = schemas["ScoreRequest"]["properties"]["time"]
        schemas["ScoreRequests"]["then"]["properties"] = {"time": self._time}
        schemas["ScoreRequests"]["properties"]["requests"]["items"] = {}
        schemas["Nothing"] = False

    def allows(self, value: object, name: str) -> bool:
        schema = {"$ref": f"#/components/schemas/{name}", "components": self._components}
        return bool(Validator(schema).is_valid(value))

    def check(self, media_type: str, request: bytes, status: int, answer: bytes) -> None:
        """Check that a body is answered if, and only if, the document allows it."""
        # A later time lies in the future, which no schema can say.
        self._time["maximum"] = int(time.time() * 1000) + Join().max_ahead
        if media_type == NDJSON:
            requests = [line for line in request.split(b"\n") if line.strip()]
            self._check_each([*map(decoded, requests)], [*map(json.loads, answer.splitlines())])
            assert status == 200
            return
        body, found = decoded(request), json.loads(answer)
        if self.allows(body, "ScoreRequests") and "requests" in body:
            self._check_each(body["requests"], found["answers"])
            assert status == 200
        else:
            self._check_one(body, found, "ScoreRequests")
            assert status == found.get("status", 200)

    def _check_each(self, requests: list[Any], answers: list[Any]) -> None:
        left = CANDIDATES
        for request, answer in zip(requests, answers, strict=True):
            left -= len(request["items"]) if self.allows(request, "ScoreRequest") else 0
            self._check_one(request, answer, "ScoreRequest" if left >= 0 else "Nothing")

    def _check_one(self, request: Any, answer: Any, allowed: str) -> None:
        if self.allows(request, allowed):
            assert self.allows(answer, "ScoreAnswer"), (request, answer)
        else:
            assert self.allows(answer, "Problem"), (request, answer)
            # A body that ends too soon may be wrong before.
            assert answer["status"] in ({400, 422} if request is NO_JSON else {422})


def decoded(text: bytes) -> Any:
    """Return what a text says, strictly: NaN is no JSON."""
    try:
        return json.loads(text, parse_constant=int)
    except ValueError:
        return NO_JSON


def operations() -> Iterator[Any]:
    """Every operation, with bodies that its document allows and with some that it forbids."""
    streams = {"kuairec": KUAIREC, "deliveries": DELIVERIES, "nested": nested_stream()}
    for name, stream in streams.items():
        config = Config(stream=stream, serve=Serve(max_candidates=CANDIDATES))
        app = application(OnePartition(), config, {"forks-stream": "0"})
        document = schemathesis.openapi.from_asgi("/openapi.json", app)
        for operation in (each for path in document.values() for each in path.values()):
            for mode in GenerationMode if operation.body else [GenerationMode.POSITIVE]:
                judge = Judge(document.raw_schema) if operation.body else None
                cases = operation.as_strategy(mode)
                yield pytest.param(cases, judge, id=f"{name} {operation.label} {mode.value}")


@pytest.mark.parametrize(("cases", "judge"), [*operations()])
@examples(100)
@given(st.data())
def test_what_the_document_allows_is_answered_and_nothing_else(
    cases: st.SearchStrategy[Case[Any]], judge: Judge | None, data: st.DataObject
) -> None:
    case = data.draw(cases)
    answer = case.call()
    excluded: list[Any] = [negative_data_rejection, positive_data_acceptance]  # the judge is stricter
    case.validate_response(answer, excluded_checks=excluded)
    if judge is not None and not case.query:
        body = answer.request.body
        assert isinstance(body, bytes)
        judge.check(case.media_type or "", body, answer.status_code, answer.content)
