"""Tests of times in messages."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.stream import Stream
from pipeline.config.stream_features import LiveTable
from pipeline.records.encoding import encode
from pipeline.records.input_decoders import InputDecoders, table_value_decoder
from pipeline.records.input_times import iso_moment, time_of_day
from pipeline.sources.messages import StreamWriter

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ORACLE = msgspec.json.Decoder(Annotated[datetime, msgspec.Meta(tz=True)])

iso_times = st.builds(
    lambda time, fraction, between, offset: f"{time:%Y-%m-%d}{between}{time:%H:%M:%S}{fraction}{offset}",
    st.datetimes(datetime(1970, 1, 3), datetime(2300, 1, 1)),
    st.one_of(st.just(""), st.from_regex(r"\.[0-9]{1,12}", fullmatch=True)),
    st.sampled_from("T "),
    st.one_of(st.just("Z"), st.from_regex(r"[+-][01][0-9]:?[0-5][0-9]", fullmatch=True)),
)


@given(iso_times)
def test_rfc_3339_is_read_as_msgspec_reads_it(text: str) -> None:
    expected = (ORACLE.decode(encode(text)) - EPOCH) // timedelta(milliseconds=1)
    milliseconds, offset = iso_moment(text)
    assert offset is not None
    assert milliseconds - offset * 60_000 == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-03-01", "2025-03-01T00:00:00"),
        ("20250301T003400Z", "2025-03-01T00:34:00"),
        ("2025-03-01 00:06", "2025-03-01T00:06:00"),
        ("2025-03-01T00:06:07,5", "2025-03-01T00:06:07.500"),
        ("2025-03-01T00:06Z", "2025-03-01T00:06:00"),
        ("2025-03-01 00:06:00 +02", "2025-03-01T00:06:00"),
    ],
)
def test_other_forms_of_iso_8601(text: str, expected: str) -> None:
    local = datetime.fromisoformat(expected).replace(tzinfo=UTC)
    assert iso_moment(text).milliseconds == (local - EPOCH) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    "text",
    [
        *("2025-02-29", "2025-3-1", "2025-03-01T24:00", "2025-03-01T12:60", "2025-03-01T12:00:60"),
        *("2025-03-01T12:00+25:00", "2025-03-01T", "\u0662025-03-01", "0000-01-01", "2025-03-01T12:00:00.Z"),
        *("25-03-01", "", "x"),
    ],
)
def test_what_is_not_iso_8601_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is|day|zone|year"):
        iso_moment(text)


@pytest.mark.parametrize(
    ("said", "minutes"),
    [(0, 0), (23, 1380), ("7", 420), ("13:05", 785), ("1:05 PM", 785), ("12:30am", 30), ("12:30 p.m.", 750)],
)
def test_times_of_the_day(said: int | str, minutes: int) -> None:
    assert time_of_day(said) == minutes * 60_000


@pytest.mark.parametrize("said", [24, -1, "24:00", "13:05 PM", "0:05 AM", "noon", "", "12:5"])
def test_other_times_of_the_day_are_refused(said: int | str) -> None:
    with pytest.raises(ValueError, match="no"):
        time_of_day(said)


def stream_of(**times: Any) -> Stream:
    interactions = {"topic": "in", "event_id": "/id", "time": "/at", **times}
    labels = {"topic": "labels", "event_id": "/id", "time": "/at", "value": "/y"}
    target = {"name": "y", "above": 0.5, "cap": 1, "scale": 1}
    return Stream.model_validate(
        {"name": "s", "interactions": interactions, "labels": labels, "target": target}
    )


MARCH = 1_740_787_200_000
"""2025-03-01 in milliseconds."""


@pytest.mark.parametrize(
    ("settings", "message", "expected"),
    [
        ({"time_unit": "ns"}, {"at": MARCH * 1_000_000 + 999_999}, MARCH),
        ({"time_unit": "iso8601", "utc_offset": "+01:00"}, {"at": "2025-03-01 01:00"}, MARCH),
        ({"time_unit": "iso8601", "utc_offset": "+01:00"}, {"at": "2025-03-01T00:00Z"}, MARCH),
        (
            {"time_unit": "text", "time_format": "%y%m%d%H", "utc_offset": "+00:00"},
            {"at": 25030100},
            MARCH,
        ),
        (
            {"time_unit": "text", "time_format": "%d%m%Y", "utc_offset": "+00:00"},
            {"at": 1032025},
            MARCH,
        ),
        (
            {"time_unit": "text", "time_format": "%m/%d/%Y", "utc_offset": "-01:00", "time_of_day": "/hr"},
            {"at": "3/1/2025", "hr": 5},
            MARCH + 6 * 3_600_000,
        ),
        (
            {"time_unit": "iso8601", "utc_offset": "+00:00", "time_of_day": "/hr"},
            {"at": "2025-03-01", "hr": "5:00 pm"},
            MARCH + 17 * 3_600_000,
        ),
    ],
)
def test_messages_have_their_times_as_the_definition_says(
    settings: dict[str, Any], message: dict[str, Any], expected: int
) -> None:
    stream = stream_of(**settings)
    decoder = InputDecoders.of(stream).interactions
    assert decoder.decode(encode({"id": 1} | message)).timestamp == expected
    written = StreamWriter(stream).interaction([1, expected, expected, 1.0])
    assert decoder.decode(written).timestamp == expected


@pytest.mark.parametrize(
    ("settings", "message", "reason"),
    [
        ({"time_unit": "iso8601"}, {"at": "2025-03-01 01:00"}, "set utc_offset"),
        (
            {"time_unit": "text", "time_format": "%d.%m.%Y", "utc_offset": "+00:00"},
            {"at": "2025-03-01"},
            r"Expected a time, got '2025-03-01': it is not written as %d.%m.%Y - at `\$.at`",
        ),
        (
            {"time_unit": "iso8601", "utc_offset": "+00:00", "time_of_day": "/hr"},
            {"at": "2025-03-01"},
            "missing required field `hr`",
        ),
        (
            {"time_unit": "iso8601", "utc_offset": "+00:00", "time_of_day": "/hr"},
            {"at": "2025-03-01", "hr": 24},
            r"Expected `int` <= 23 - at `\$.hr`",
        ),
        ({"time_unit": "iso8601", "utc_offset": "+00:00"}, {"at": "2025-03-01" * 50}, "length <= 100"),
        ({"time_unit": "iso8601", "utc_offset": "+00:00"}, {"at": "1969-03-01"}, "from 1970 on"),
    ],
)
def test_other_messages_are_refused(settings: dict[str, Any], message: dict[str, Any], reason: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=reason):
        InputDecoders.of(stream_of(**settings)).interactions.decode(encode({"id": 1} | message))


@pytest.mark.parametrize("at", ["soon", "2025-02-30T00:00Z", "1969-03-01T00:00Z", "2025-03-01"])
def test_records_of_tables_with_another_time_are_refused_as_messages_are(at: str) -> None:
    price = {"kind": "number", "field": "/price"}
    table = LiveTable.model_validate(
        {"topic": "t", "entity": "e", "time": "/at", "time_unit": "iso8601", "features": {"price": price}}
    )
    with pytest.raises(msgspec.ValidationError, match=r"Expected a time.* - at `\$\.at`"):
        table_value_decoder(table)(encode({"price": 1.0, "at": at}))


def test_a_table_may_be_without_a_time() -> None:
    price = {"kind": "number", "field": "/price"}
    table = LiveTable.model_validate({"topic": "t", "entity": "e", "features": {"price": price}})
    assert table_value_decoder(table)(encode({"price": 1.0})) == (None, None, 1.0)
