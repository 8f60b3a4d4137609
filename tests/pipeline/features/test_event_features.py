"""Features that a message has by itself, from its bytes to the context vector."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks.sparse import category, word_hashes
from pipeline.config.settings import Learner
from pipeline.config.stream import KUAIREC, Stream
from pipeline.features.event_features import bucket_of
from pipeline.features.feature_set import FeatureSet
from pipeline.model.contexts import ContextLayout
from pipeline.model.learner_settings import learner_settings
from pipeline.records.decoding import RejectedRecord, decode
from pipeline.records.encoding import encode
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.names import Fault
from pipeline.records.output_types import OutputTypes
from pipeline.tools.audit.dispositions import match_key, prediction_key

BASE = KUAIREC.model_dump(mode="json") | {"entities": {"device": "/device"}}
LATEST = 2**53
ALL = {
    "temperature": {"kind": "number", "field": "/reading/temperature"},
    "size": {"kind": "number", "field": "/size", "log": True, "clip": [-10.0, 1000.0], "missing": 0.0},
    "indoors": {"kind": "boolean", "field": "/indoors", "missing": False},
    "site": {"kind": "category", "field": "/site", "columns": 8, "missing": "nowhere"},
    "noise": {"kind": "vector", "field": "/noise", "length": 2, "missing": 0.0},
    "hour": {"kind": "hour", "utc_offset": "+05:30"},
    "weekday": {"kind": "weekday", "utc_offset": "-02:00"},
}
WHOLE: dict[str, Any] = {
    "event_id": 1,
    "device": "d",
    "timestamp": 1_772_366_400_000,
    "video_duration": 1,
    "reading": {"temperature": 21.5},
    "size": 99.0,
    "indoors": True,
    "site": "attic",
    "noise": [0.5, -1.5],
}


def stream_of(**features: Any) -> Stream:
    return Stream.model_validate(BASE | {"features": features})


def record_of(stream: Stream, message: dict[str, Any]) -> Any:
    decoder = InputDecoders.of(stream).interactions
    [record] = decode([str(message["device"]).encode()], [encode(message)], decoder, LATEST)
    return record


def values_of(stream: Stream, message: dict[str, Any]) -> dict[str, float]:
    record, features = record_of(stream, message), FeatureSet.of(stream)
    assert not isinstance(record, RejectedRecord), record.reason
    [values] = features.event.values([record], np.array([record.timestamp]))
    return dict(zip(features.event.names, values.tolist(), strict=True))


def test_texts_ids_and_hours_are_features_of_the_sparse_part() -> None:
    stream = stream_of(
        title={"kind": "text", "field": "/title", "words": 3, "missing": "none"},
        body={"kind": "text", "field": "/body", "words": 2, "ngram": 3},
        unit={"kind": "id", "entity": "device"},
        hour={"kind": "hour", "utc_offset": "+05:30", "encoding": "category"},
        weekday={"kind": "weekday", "encoding": "category"},
    )
    found = values_of(stream, WHOLE | {"title": "Win, WIN the Straße now!", "body": "ab"})
    assert [found[f"title_{number}"] for number in range(3)] == word_hashes("win the strasse", "title", 3)
    assert [found["body_0"], found["body_1"]] == word_hashes(" ab ", "body", 2, 3)
    assert word_hashes("win", "title", 1) != word_hashes("win", "body", 1)
    assert found["unit"] == category("d")
    assert (found["hour"], found["weekday"]) == (17.0, 6.0)  # 12:00 of a Sunday in UTC
    found = values_of(stream, WHOLE | {"body": " ,;"})
    assert [found["title_0"], found["title_1"]] == word_hashes("none", "title", 2)
    assert (found["body_0"], found["body_1"]) == (0.0, 0.0)
    for changes in ({"body": 5}, {"title": ["a"], "body": ""}):
        rejected = record_of(stream, WHOLE | changes)
        assert isinstance(rejected, RejectedRecord)
        assert rejected.fault is Fault.INVALID


def test_each_kind_of_feature_is_made_of_its_field() -> None:
    found = values_of(stream_of(**ALL), WHOLE)
    assert found["temperature"] == 21.5
    assert found["size"] == pytest.approx(math.log(100.0), abs=1e-6)
    assert found["indoors"] == 1.0
    assert found["site"] == bucket_of("attic", 8)
    assert (found["noise_0"], found["noise_1"]) == (0.5, -1.5)


@given(time=st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_hours_and_weekdays_are_those_of_the_calendar(time: datetime) -> None:
    milliseconds = (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    found = values_of(stream_of(**ALL), WHOLE | {"timestamp": milliseconds})
    india = time.astimezone(timezone(timedelta(hours=5, minutes=30)))
    angle = 2.0 * math.pi * (60 * india.hour + india.minute) / 1_440
    assert (found["hour_sin"], found["hour_cos"]) == pytest.approx(
        (math.sin(angle), math.cos(angle)), abs=1e-6
    )
    angle = 2.0 * math.pi * time.astimezone(timezone(-timedelta(hours=2))).weekday() / 7
    assert (found["weekday_sin"], found["weekday_cos"]) == pytest.approx(
        (math.sin(angle), math.cos(angle)), abs=1e-6
    )


@pytest.mark.parametrize("absent", [True, False])
def test_what_is_missing_counts_as_what_the_definition_says(absent: bool) -> None:
    message = dict(WHOLE)
    for name in ("size", "indoors", "site", "noise"):
        message[name] = None
        if absent:
            del message[name]
    found = values_of(stream_of(**ALL), message)
    assert (found["size"], found["indoors"], found["noise_0"], found["noise_1"]) == (0.0, 0.0, 0.0, 0.0)
    assert found["site"] == bucket_of("nowhere", 8)


def test_an_indicator_says_where_a_number_is_missing() -> None:
    stream = stream_of(x={"kind": "number", "field": "/x", "missing": 3.0, "indicator": True, "log": True})
    assert values_of(stream, WHOLE) == {"x": pytest.approx(math.log(4.0), abs=1e-6), "x_missing": 1.0}
    assert values_of(stream, WHOLE | {"x": 0.0}) == {"x": 0.0, "x_missing": 0.0}
    with pytest.raises(ValueError, match="set missing to what counts there"):
        stream_of(x={"kind": "number", "field": "/x", "indicator": True})


def test_an_object_of_which_everything_may_be_missing_may_be_missing() -> None:
    stream = stream_of(x={"kind": "number", "field": "/a/b/x", "missing": 3.0})
    assert values_of(stream, WHOLE) == {"x": 3.0}
    assert values_of(stream, WHOLE | {"a": {}}) == {"x": 3.0}
    assert values_of(stream, WHOLE | {"a": {"b": {"x": 4}}}) == {"x": 4.0}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"reading": {}}, "missing required field `temperature` - at `$.reading`"),
        ({"reading": {"temperature": "hot"}}, "got `str` - at `$.reading.temperature`"),
        ({"reading": {"temperature": 1e300}}, "at `$.reading.temperature`"),
        ({"noise": [0.5]}, "`array` of length >= 2 - at `$.noise`"),
        ({"noise": [0.5] * 3}, "at `$.noise`"),
        ({"noise": [0.5, None]}, "at `$.noise[1]`"),
        ({"indoors": 1}, "at `$.indoors`"),
        ({"site": 1.5}, "at `$.site`"),
        ({"site": "x" * 300}, "at `$.site`"),
    ],
)
def test_a_message_without_a_feature_or_with_another_kind_is_invalid(
    changes: dict[str, Any], reason: str
) -> None:
    rejected = record_of(stream_of(**ALL), WHOLE | changes)
    assert isinstance(rejected, RejectedRecord)
    assert rejected.fault is Fault.INVALID
    assert reason in rejected.reason


def test_not_a_number_is_not_json() -> None:
    stream = stream_of(x={"kind": "number", "field": "/x"})
    text = encode(WHOLE).replace(b'"size":99.0', b'"x":NaN')
    [rejected] = decode([b"d"], [text], InputDecoders.of(stream).interactions, LATEST)
    assert isinstance(rejected, RejectedRecord)
    assert rejected.fault is Fault.UNDECODABLE


@given(number=st.floats(-1e15, 1e15))
def test_logarithms_are_odd_and_clipped_numbers_stay_in_range(number: float) -> None:
    plain = {"kind": "number", "field": "/x", "log": True}
    stream = stream_of(x=plain, y={"kind": "number", "field": "/y", "clip": [-2.0, 5.0]})
    one, other = (values_of(stream, WHOLE | {"x": x, "y": x}) for x in (number, -number))
    assert one["x"] == -other["x"]
    assert one["x"] == pytest.approx(math.copysign(math.log1p(abs(number)), number), abs=1e-6)
    assert one["y"] == min(max(number, -2.0), 5.0)


def test_a_category_is_one_of_its_columns_which_the_kernel_does_not_see() -> None:
    stream = stream_of(**ALL)
    features = FeatureSet.of(stream)
    layout, values = ContextLayout.of(3, features), values_of(stream, WHOLE)
    rows = np.array([[*([0.25] * features.running), *values.values()]] * 2)
    site = features.running + features.event.names.index("site")
    rows[1, site] = 8.0  # which is no category
    X = np.zeros((2, layout.dimension))
    layout.fill(X, rows)
    assert X[:, :3].tolist() == [[0.0] * 3] * 2
    assert np.flatnonzero(X[0, 3:11]).tolist() == [bucket_of("attic", 8)]
    assert not X[1, 3:11].any()
    assert X[1, 11:].tolist() == X[0, 11:].tolist()
    assert X[0, 11:].tolist() == [value for place, value in enumerate(rows[0].tolist()) if place != site]
    settings = learner_settings(Learner(), 3, features=features)
    assert settings.dimension == layout.dimension == 3 + 8 + len(features) - 1
    assert settings.linear_columns == (3, layout.dimension)
    assert settings.kernel_columns == (11, layout.dimension)


def test_the_log_odds_of_effects_are_found_behind_categories() -> None:
    stream = Stream.model_validate(KUAIREC.model_dump(mode="json") | {"features": ALL})
    features = FeatureSet.of(stream)
    settings, layout = learner_settings(Learner(), 3, features=features), ContextLayout.of(3, features)
    X, rows = np.zeros((1, layout.dimension)), np.zeros((1, len(features)))
    rows[0, features.names.index("effects_logit")] = 7.0
    layout.fill(X, rows)
    assert settings.offset_column is not None
    assert X[0, settings.offset_column] == 7.0


def test_an_audit_tells_messages_with_other_features_apart() -> None:
    stream = stream_of(**ALL)
    features, types = FeatureSet.of(stream), OutputTypes.of(stream)
    make: Any = types.prediction
    values = [*values_of(stream, WHOLE).values()]
    running = [0.5] * features.running
    prediction = make(1, "d", WHOLE["timestamp"], 0.0, 0.5, False, [*running, *values], 0, 0)
    key = prediction_key(prediction, features)
    assert match_key(record_of(stream, WHOLE), features.event) == key
    other = record_of(stream, WHOLE | {"size": 98.0})
    assert match_key(other, features.event) != key
