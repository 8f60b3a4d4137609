"""Definitions of slates, and what does not go with them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.config.settings import Config
from pipeline.config.stream import KUAIREC, Stream
from tests.support.slates import SLATES


def definition(**changes: Any) -> dict[str, Any]:
    """The definition of slates, with other settings of interactions."""
    return SLATES.model_dump() | {"interactions": SLATES.interactions.model_dump() | changes}


def refused(given: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        Stream.model_validate(given)
    return str(caught.value)


def test_an_item_has_its_own_entities() -> None:
    assert SLATES.has_slates
    assert SLATES.item_entities == (1,)
    assert not KUAIREC.has_slates
    assert KUAIREC.item_entities == ()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"items": None}, "item_fields are read in the items of a list: set items"),
        ({"item_fields": ()}, "item_fields have to name the entity"),
        ({"item_fields": ("video_duration",)}, "item_fields have to name the entity"),
        ({"item_fields": ("video_id", "price")}, "item_fields name price, which is no entity"),
        ({"item_fields": ("video_id", "video_id")}, "item_fields name a field twice"),
        ({"item_fields": ("user_id", "video_id")}, "the key is user_id, which each item of a slate has"),
        ({"max_items": 0}, "greater than or equal to 1"),
        ({"max_items": 1_001}, "less than or equal to 1000"),
        ({"items": "/user_id"}, "items and entities.user_id are both /user_id"),
        ({"items": "/timestamp/list"}, "one is within the other"),
        ({"numbers": {"video_duration": "/video_id"}}, "are both /video_id"),
    ],
)
def test_settings_of_interactions_that_are_refused(changes: dict[str, Any], says: str) -> None:
    assert says in refused(definition(**changes))


def test_a_field_of_an_item_may_be_called_as_one_of_the_message() -> None:
    stream = Stream.model_validate(definition(items="/video_id"))
    assert stream.has_slates


def test_names_of_slates_fields_are_refused() -> None:
    target = SLATES.target.model_dump() | {"name": "position"}
    assert "position is the name of another field" in refused(definition() | {"target": target})
    Stream.model_validate(KUAIREC.model_dump() | {"target": target})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"join": {"max_pending": 4}}, "stream.interactions.max_items is above join.max_pending"),
    ],
)
def test_other_settings_that_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says.replace("(", r"\(")):
        Config(stream=SLATES, **settings)


def test_a_prediction_that_brokers_might_refuse_is_refused_before() -> None:
    wide = definition(max_items=300) | {
        "features": {"embedding": {"kind": "vector", "field": "/embedding", "length": 100}}
    }
    with pytest.raises(ValidationError, match=r"with 110 features .* set it to at most 194"):
        Config(stream=Stream.model_validate(wide))
    wide["interactions"]["max_items"] = 194
    Config(stream=Stream.model_validate(wide))
