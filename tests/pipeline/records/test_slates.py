"""Messages of slates, and the records of their predictions."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.stream import KUAIREC, MAX_ITEMS, Stream
from pipeline.records.decoding import RejectedRecord, decode
from pipeline.records.encoding import encode
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.output_types import OutputTypes
from pipeline.records.slates import STRIDE, SlateItem, SlatePrediction
from pipeline.tools.stream.schemas import schemas_of
from tests.support.examples import examples
from tests.support.record_strategies import counts, finite, ids, times
from tests.support.slates import SLATES, TYPES, slate

DECODER = InputDecoders.of(SLATES).interactions


def reason_of(value: bytes) -> str:
    [record] = decode([b"1"], [value], DECODER, 10**9)
    assert isinstance(record, RejectedRecord)
    return f"{record.fault}: {record.reason}"


def with_items(items: Any) -> bytes:
    return json.dumps({"event_id": 1, "user_id": 1, "timestamp": 5, "items": items}).encode()


GOOD = {"video_id": 7, "video_duration": 5}


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([], "Expected `array` of length >= 1 - at `$.items`"),
        ([GOOD] * 6, "Expected `array` of length <= 5 - at `$.items`"),
        (None, "Expected `array`, got `null` - at `$.items`"),
        ([GOOD, 7], "Expected `object`, got `int` - at `$.items[1]`"),
        ([GOOD, {"video_id": 8}], "Object missing required field `video_duration` - at `$.items[1]`"),
        ([GOOD, GOOD | {"video_id": True}], "Expected `int | str`, got `bool` - at `$.items[1].video_id`"),
        ([GOOD, GOOD | {"video_id": ""}], "Expected `str` of length >= 1 - at `$.items[1].video_id`"),
        (
            [GOOD, GOOD | {"video_duration": -1}],
            "Expected `float` >= 0.0 - at `$.items[1].video_duration`",
        ),
        (
            [GOOD, GOOD | {"video_id": 8}, GOOD],
            "The item 7 is in the slate twice, also as `items[0]` - at `$.items[2].video_id`",
        ),
    ],
)
def test_the_reason_names_the_item_and_the_field(items: Any, reason: str) -> None:
    assert reason_of(with_items(items)) == f"invalid: {reason}"


def test_half_a_surrogate_pair_in_an_item_is_named() -> None:
    value = rb'{"event_id":1,"user_id":1,"timestamp":5,"items":[{"video_id":"\ud800","video_duration":1}]}'
    assert reason_of(value).startswith("undecodable: items[0].entity_1 has half a surrogate pair")


def test_a_message_without_items_is_refused_and_what_else_it_has_is_ignored() -> None:
    assert "missing required field `items`" in reason_of(b'{"event_id":1,"user_id":1,"timestamp":5}')
    message = json.loads(slate("e", 5, [3, "v"])) | {"video_id": [], "more": {}}
    [record] = decode([b"1"], [json.dumps(message).encode()], DECODER, 10**9)
    assert [(each.event_id, each.ids, each.timestamp) for each in record.items] == [  # type: ignore[union-attr]
        ("e", (1, 3), 5),
        ("e", (1, "v"), 5),
    ]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=7)
        | st.dictionaries(st.sampled_from(["video_id", "video_duration", "x"]), inner)
    ),
    max_leaves=12,
)
some_items = st.lists(
    st.fixed_dictionaries(
        {"video_id": anything | st.integers(0, 3), "video_duration": anything | st.just(1.0)}
    )
    | anything,
    max_size=7,
)


@examples(300)
@given(items=some_items | anything)
def test_whatever_the_items_are_the_message_is_a_slate_or_refused_as_a_whole(items: Any) -> None:
    [record] = decode([b"1"], [with_items(items)], DECODER, 10**9)
    if isinstance(record, RejectedRecord):
        assert record.fault in {"invalid", "undecodable"}
        assert record.reason
        return
    shown = [each.ids[1] for each in record.items]  # type: ignore[union-attr]
    assert shown == [each["video_id"] for each in items]
    assert 1 <= len(shown) == len(set(shown)) <= 5


def test_positions_fit_between_two_numbers() -> None:
    assert MAX_ITEMS <= STRIDE


items = st.builds(
    TYPES.slates.item if TYPES.slates else SlateItem,
    ids,
    finite,
    st.none() | st.floats(0, 1),
    st.booleans(),
    st.lists(finite, min_size=10, max_size=10),
    st.none() | st.dictionaries(st.sampled_from("abc"), finite, min_size=1),
    st.none() | st.booleans(),
)
records = st.builds(
    TYPES.slates.record if TYPES.slates else SlatePrediction,
    ids,
    ids,
    times,
    st.lists(items, min_size=1, max_size=4),
    counts,
    st.integers(0, 2**50),
)


@examples(50)
@given(record=records)
def test_the_predictions_of_the_items_are_the_record_again(record: SlatePrediction) -> None:
    slates = TYPES.slates
    assert slates is not None
    predictions = TYPES.predictions_of(encode(record))
    assert [(each.number % STRIDE, each.number // STRIDE) for each in predictions] == [
        (position, record.sequence) for position in range(len(record.items))
    ]
    assert encode(slates.join(predictions)) == encode(record)
    schemas = schemas_of(SLATES)
    jsonschema.Draft202012Validator(schemas["prediction"]).validate(json.loads(encode(record)))
    for sequence, each in enumerate(predictions):
        request = TYPES.label_request.of(each, sequence)
        said = json.loads(encode(request))
        jsonschema.Draft202012Validator(schemas["label-request"]).validate(said)
        assert (said["position"], said["video_id"]) == (sequence, each.ids[1])
        assert (request.prediction_number, request.in_slate) == (each.number, each.in_slate)


def test_the_schema_describes_each_field() -> None:
    schema = schemas_of(SLATES)["prediction"]
    item = schema["$defs"]["SlateItem"]
    assert schema["properties"]["items"]["maxItems"] == MAX_ITEMS
    for each in (schema, item):
        assert all(part["description"] for part in each["properties"].values()), each
    assert "position" in schemas_of(SLATES)["outcome"]["required"]
    assert schemas_of(SLATES)["outcome"]["properties"]["position"]["description"]
    assert "position" not in schemas_of(KUAIREC)["outcome"]["properties"]


def test_ids_of_message_and_item_may_alternate_in_the_definition() -> None:
    stream = Stream.model_validate(
        SLATES.model_dump()
        | {
            "entities": {"video_id": "/video_id", "user_id": "/user_id", "shop": "/shop"},
            "key": "user_id",
            "interactions": SLATES.interactions.model_dump()
            | {"item_fields": ("video_id", "shop", "video_duration")},
            "running": {"user_id": {}},
        }
    )
    types = OutputTypes.of(stream)
    assert types.slates is not None
    length = types.features
    item = {"video_id": 3, "shop": "s", "score": 0.5, "probability": 0.5, "predicted": True}
    text = encode(
        {"event_id": 1, "user_id": 7, "timestamp": 5, "items": [item | {"features": [0.0] * length}]}
        | {"model_version": 0, "sequence": 4}
    )
    [prediction] = types.predictions_of(text)
    assert prediction.ids == (3, 7, "s")
    assert types.slate_key_of(types.slates.decoder.decode(text)) == 7
    assert msgspec.json.decode(encode(types.slates.join([prediction]))) == msgspec.json.decode(text)
