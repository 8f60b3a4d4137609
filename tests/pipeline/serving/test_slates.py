"""Requests for scores of a stream whose interactions are slates."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.config.settings import Join, Serve
from pipeline.config.stream import Stream
from pipeline.serving.scoring_requests import RequestDecoder, RequestError
from tests.support.slates import SLATES

SHELVES = Stream.model_validate(
    SLATES.model_dump()
    | {
        "interactions": SLATES.interactions.model_dump() | {"items": "/page/shown"},
        "entities": {"user_id": "/who/id", "video_id": "/id"},
    }
)


def decoded(body: dict[str, Any]) -> Any:
    return RequestDecoder(SHELVES, Serve(), Join()).decode(json.dumps(body).encode())


def test_items_have_what_items_of_slates_have_and_the_rest_stands_beside() -> None:
    found = decoded({"who": {"id": 7}, "items": [{"id": 1}, {"id": "b", "more": 3}], "time": 5})
    assert [each.ids for each in found.candidates] == [(7, 1), (7, "b")]
    assert found.keys == {7}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"items": [{"id": 1, "who": {"id": 7}}]}, "items[0].who.id"),
        ({"who": {"id": 7}, "items": [{"id": 1}, {}]}, "items[1].id"),
        ({"who": {"id": 7}, "items": [{"id": 1}, {"id": 0.5}]}, "items[1].id"),
        ({"who": {"id": 7}, "id": 3, "items": [{}]}, "id"),
        ({"who": {"id": 7}, "page": {"shown": []}, "items": [{"id": 1}]}, "page"),
    ],
)
def test_fields_at_another_place_are_refused(body: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        decoded(body)
    assert (caught.value.status_code, caught.value.field) == (422, field)
