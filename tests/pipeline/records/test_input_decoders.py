"""Decoders compiled from a definition: against KuaiRec's static types, and with other shapes and units."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.stream import KUAIREC, Stream
from pipeline.records.decoding import (
    INTERACTION_DECODER,
    LABEL_DECODER,
    InputDecoder,
    Record,
    RejectedRecord,
    decode,
)
from pipeline.records.encoding import encode
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Label
from pipeline.records.names import Fault
from tests.support.record_strategies import interactions, labels

LATEST = 2**53
json_values = (
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats(0, 1e12) | st.text(max_size=3)
)
DELIVERIES: dict[str, Any] = {
    "name": "deliveries",
    "entities": {"courier": "/courier/id", "restaurant": "/from"},
    "interactions": {"topic": "orders", "event_id": "/order", "time": "/times/at", "time_unit": "iso8601"},
    "labels": {
        "topic": "arrivals",
        "event_id": "/order",
        "time": "/times/arrived",
        "time_unit": "s",
        "value": "/on_time",
        "value_kind": "boolean",
    },
    "target": {"name": "on_time", "above": 0.5, "cap": 1.0, "scale": 0.5},
}


def decoders(**changes: Any) -> InputDecoders:
    return InputDecoders.of(Stream.model_validate(DELIVERIES | changes))


def order(**changes: Any) -> dict[str, Any]:
    times = {"at": "2026-03-01T12:00:00.250Z"}
    return {"order": "o1", "courier": {"id": "c7"}, "from": 3, "times": times} | changes


def arrival(**changes: Any) -> dict[str, Any]:
    return order(times={"arrived": 1_772_366_400.75}, on_time=True) | changes


def rejection(value: Any, *, label: bool = False, key: bytes = b"c7", latest: int = LATEST) -> RejectedRecord:
    found = decoders().labels if label else decoders().interactions
    [record] = decode([key], [encode(value)], found, latest)
    assert isinstance(record, RejectedRecord)
    return record


@given(record=interactions | labels)
def test_kuairec_s_decoders_read_what_its_sources_send(record: msgspec.Struct) -> None:
    compiled, value = InputDecoders.of(KUAIREC), encode(record)
    found = (compiled.labels if hasattr(record, "watch_ratio") else compiled.interactions).decode(value)
    own = {"entity_0": "user_id", "entity_1": "video_id"}
    for name in found.__struct_fields__:
        assert getattr(found, name) == getattr(record, own.get(name, name.removeprefix("number_")))


@given(
    value=st.dictionaries(
        st.sampled_from(["event_id", "user_id", "video_id", "timestamp", "video_duration", "watch_ratio"]),
        json_values,
    )
)
def test_kuairec_s_decoders_give_the_reasons_of_the_static_types(value: dict[str, Any]) -> None:
    compiled = InputDecoders.of(KUAIREC)
    for one, other in ((compiled.interactions, INTERACTION_DECODER), (compiled.labels, LABEL_DECODER)):
        [found] = decode([b"7"], [encode(value)], one, LATEST)
        [expected] = decode([b"7"], [encode(value)], other, LATEST)
        if isinstance(expected, RejectedRecord):
            assert found == expected
        else:
            assert not isinstance(found, RejectedRecord)


def test_ids_times_and_labels_are_found_wherever_they_are() -> None:
    found = decoders().interactions.decode(encode(order(surplus=[{"deep": None}])))
    assert (found.event_id, found.ids) == ("o1", ("c7", 3))
    assert found.timestamp == 1_772_366_400_250
    label = decoders().labels.decode(encode(arrival(on_time=False)))
    assert (label.timestamp, label.watch_ratio) == (1_772_366_400_750, 0.0)
    assert decoders().labels.decode(encode(arrival())).watch_ratio == 1.0


@pytest.mark.parametrize(
    ("unit", "time", "expected"),
    [
        ("ms", 1_772_366_400_250, 1_772_366_400_250),
        ("us", 1_772_366_400_250_999, 1_772_366_400_250),
        ("s", 1_772_366_400.25, 1_772_366_400_250),
        ("s", 1_772_366_400, 1_772_366_400_000),
        ("iso8601", "2026-03-01T13:00:00.250+01:00", 1_772_366_400_250),
    ],
)
def test_units_of_time(unit: str, time: object, expected: int) -> None:
    definition = DELIVERIES["interactions"] | {"time_unit": unit}
    found = decoders(interactions=definition).interactions.decode(encode(order(times={"at": time})))
    assert found.timestamp == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (order(courier={}), "Object missing required field `id` - at `$.courier`"),
        (order(courier="c7"), "Expected `object`, got `str` - at `$.courier`"),
        (order(times={"at": "yesterday"}), "'yesterday': it is not ISO 8601 - at `$.times.at`"),
        (order(times={"at": "2026-03-01T12:00:00"}), "it does not say its zone: set utc_offset"),
        (order(times={"at": "1969-12-31T23:59:59Z"}), "Expected a time from 1970 on"),
        (order(times={"at": 5}), "Expected `str`, got `int` - at `$.times.at`"),
        (order(order=1.5), "at `$.order`"),
        (order(**{"from": ""}), "Expected `str` of length >= 1 - at `$.from`"),
    ],
)
def test_a_field_that_does_not_fit_is_named_by_its_path(value: Any, reason: str) -> None:
    rejected = rejection(value)
    assert rejected.fault is Fault.INVALID
    assert reason in rejected.reason


@pytest.mark.parametrize("value", [0.5, "true", None, 1])
def test_a_boolean_label_is_true_or_false(value: object) -> None:
    rejected = rejection(arrival(on_time=value), label=True)
    assert "Expected `bool`" in rejected.reason
    assert "`$.on_time`" in rejected.reason


def test_the_key_is_the_first_entity() -> None:
    rejected = rejection(order(), key=b"3")
    assert rejected.fault is Fault.WRONG_KEY
    assert rejected.reason == "the key is b'3', but courier.id is 'c7': the key has to be \"c7\""


def test_a_time_in_the_future_is_told_in_milliseconds() -> None:
    rejected = rejection(order(), latest=1_772_366_400_249)
    assert rejected.fault is Fault.FUTURE
    assert "1772366400250" in rejected.reason


def test_numbers_have_to_be_there() -> None:
    definition = DELIVERIES["interactions"] | {"numbers": {"distance": "/route/meters"}}
    found = decoders(interactions=definition).interactions
    assert found.decode(encode(order(route={"meters": 12.5}))).event_id == "o1"
    for route in ({}, {"meters": -1}, {"meters": "far"}):
        with pytest.raises(msgspec.ValidationError, match=r"`\$\.route"):
            found.decode(encode(order(route=route)))


literals = st.sampled_from(
    ["1e400", "-1e400", "9007199254740.993", "-0.0", "1.5", "true", "null", "[]", "{}", "NaN", str(10**40)]
    + [f'"{time}"' for time in ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59", "", "now")]
)


@given(unit=st.sampled_from(["ms", "us", "s", "iso8601"]), time=literals, courier=literals, on_time=literals)
def test_hostile_values_are_rejected_and_nothing_else_is_raised(
    unit: str, time: str, courier: str, on_time: str
) -> None:
    compiled = decoders(
        interactions=DELIVERIES["interactions"] | {"time_unit": unit},
        labels=DELIVERIES["labels"] | {"time_unit": unit},
    )
    text = (
        f'{{"order":"o","courier":{{"id":{courier}}},"from":3,'
        f'"times":{{"at":{time},"arrived":{time}}},"on_time":{on_time}}}'
    )
    for decoder in (compiled.interactions, compiled.labels):
        [record] = decode([b"c7"], [text.encode()], decoder, LATEST)
        assert isinstance(record, RejectedRecord)  # no courier is c7


SIGNALS = DELIVERIES["labels"] | {"value_kind": "signal", "signals": {"click": 1.0, "like": 2, "hide": -1}}


@pytest.mark.parametrize(("text", "value"), [("click", 1.0), ("like", 2.0), ("hide", -1.0)])
def test_a_signal_counts_as_its_number(text: str, value: float) -> None:
    [found] = decode([b"c7"], [encode(arrival(on_time=text))], signals(), LATEST)
    assert isinstance(found, Label)
    assert found.watch_ratio == value


@pytest.mark.parametrize("text", ["share", "", 1, True, None])
def test_a_signal_that_is_not_named_is_invalid(text: object) -> None:
    [found] = decode([b"c7"], [encode(arrival(on_time=text))], signals(), LATEST)
    assert isinstance(found, RejectedRecord)
    assert found.fault is Fault.INVALID
    assert "at `$.on_time`" in found.reason


def signals() -> InputDecoder[Label]:
    return decoders(labels=SIGNALS).labels


def weighed(**labels: Any) -> InputDecoder[Label]:
    return decoders(labels=DELIVERIES["labels"] | {"weight": "/worth/weight"} | labels).labels


def labels_of(decoder: InputDecoder[Label], **fields: Any) -> Record:
    [found] = decode([b"c7"], [encode(arrival(**fields))], decoder, LATEST)
    return found


@pytest.mark.parametrize("weight", [0, 1, 0.25, 1000, 1e-300, -0.0])
@pytest.mark.parametrize("kind", ["number", "boolean", "signal"])
def test_a_weight_is_found_wherever_it_is(kind: str, weight: float) -> None:
    signals_ = {"signals": {"yes": 1.0}} if kind == "signal" else {}
    value = {"number": 1.0, "boolean": True, "signal": "yes"}[kind]
    found = labels_of(weighed(value_kind=kind, **signals_), worth={"weight": weight}, on_time=value)
    assert isinstance(found, Label)
    assert (found.watch_ratio, found.weight) == (1.0, weight)
    assert isinstance(found.weight, float)


def test_a_weight_at_the_top_of_a_message_costs_no_more_than_another_field() -> None:
    flat = KUAIREC.model_dump() | {"labels": KUAIREC.labels.model_dump() | {"weight": "/weight"}}
    decoder = InputDecoders.of(Stream.model_validate(flat)).labels
    value = (
        b'{"event_id":1,"user_id":7,"video_id":3,"timestamp":5,"play_duration":1,"watch_ratio":2,"weight":3}'
    )
    found = decoder.decode(value)
    assert (found.weight, found.watch_ratio, found.ids) == (3.0, 2.0, (7, 3))
    assert isinstance(decoder.decode, type(msgspec.json.Decoder().decode))


@pytest.mark.parametrize(
    ("worth", "reason"),
    [
        ({}, "Object missing required field `weight` - at `$.worth`"),
        (None, "Expected `object`, got `null` - at `$.worth`"),
        ({"weight": None}, "Expected `float`, got `null` - at `$.worth.weight`"),
        ({"weight": "2"}, "Expected `float`, got `str` - at `$.worth.weight`"),
        ({"weight": True}, "Expected `float`, got `bool` - at `$.worth.weight`"),
        ({"weight": [1.0]}, "Expected `float`, got `array` - at `$.worth.weight`"),
        ({"weight": -1e-300}, "Expected `float` >= 0.0 - at `$.worth.weight`"),
        ({"weight": 1000.0000000000001}, "Expected `float` <= 1000.0 - at `$.worth.weight`"),
        ({"weight": 2**70}, "Expected `float` <= 1000.0 - at `$.worth.weight`"),
    ],
)
def test_what_is_no_weight_is_invalid_with_its_field(worth: object, reason: str) -> None:
    found = labels_of(weighed(), worth=worth)
    assert found == RejectedRecord(Fault.INVALID, reason)


@given(weight=literals)
def test_hostile_weights_are_rejected_or_in_range(weight: str) -> None:
    value = encode(arrival(worth={"weight": 7654321.0})).replace(b"7654321.0", weight.encode())
    [found] = decode([b"c7"], [value], weighed(), LATEST)
    assert isinstance(found, RejectedRecord) or 0.0 <= getattr(found, "weight", -1.0) <= 1000.0


@pytest.mark.parametrize(("text", "value", "weight"), [("click", 1, 1), ("like", 2, 3.5), ("hide", -1, 0)])
def test_a_signal_has_its_weight_and_1_where_none_is_said(text: str, value: float, weight: float) -> None:
    decoder = decoders(labels=SIGNALS | {"weights": {"like": 3.5, "hide": 0}}).labels
    found = labels_of(decoder, on_time=text)
    assert isinstance(found, Label)
    assert (found.watch_ratio, found.weight) == (value, weight)
    assert isinstance(labels_of(decoder, on_time="share"), RejectedRecord)


def test_without_weights_a_label_counts_as_one() -> None:
    found = labels_of(decoders().labels, worth={"weight": 3})
    assert isinstance(found, Label)
    assert found.weight == 1.0
    assert "weight" not in found.__struct_fields__
