"""Messages that are decoded to columns hold what they hold when they are decoded one by one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.stream import KUAIREC, Stream
from pipeline.records.column_decoder import FEWEST, ColumnDecoder
from pipeline.records.decoding import (
    INTERACTION_DECODER,
    LABEL_DECODER,
    Decoded,
    RejectedRecord,
    decode,
)
from pipeline.records.input_columns import InputColumns
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import KafkaMessage, RawMessage
from pipeline.records.kuairec import WatchLabel
from tests.support.builders import interaction, label
from tests.support.entries import delivered
from tests.support.examples import examples

LATEST = 10**9
LABEL = b'{"event_id":"e","user_id":7,"video_id":-3,"timestamp":5,"play_duration":900,"watch_ratio":0.5}'


def scanned(*values: bytes, key: bytes = b"7") -> Decoded:
    return ColumnDecoder(LABEL_DECODER, fewest=1).decode(messages([key] * len(values), [*values]), LATEST)


def messages(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> list[KafkaMessage]:
    """Messages with these keys and values."""
    pairs = enumerate(zip(keys, values, strict=True))
    return [delivered(RawMessage("t", 0, offset, *pair)) for offset, pair in pairs]


def test_a_usual_message_is_in_the_columns_only() -> None:
    found = scanned(LABEL, b" " + LABEL.replace(b",", b"\r\n,\t").replace(b":", b" : ") + b"\n")
    columns = found.columns
    assert columns is not None
    assert found.records == [None, None]
    assert found.times.tolist() == [5, 5]
    assert [columns.ids(number) for number in range(3)] == [["e", "e"], [7, 7], [-3, -3]]
    assert columns.field("play_duration") == [900.0, 900.0]
    assert columns.field("watch_ratio") == [0.5, 0.5]
    assert found.decode(LABEL) == WatchLabel("e", 7, -3, 5, play_duration=900, watch_ratio=0.5)


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ('"e"', '"\\u0065"'),
        ('"e"', '"é"'),
        ('"e"', '"\\""'),
        ('"event_id"', '"\\u0065vent_id"'),
        ('"user_id"', '"user_id":8,"user_id"'),
        ("-3", "9223372036854775807"),
        ('"watch_ratio"', '"é":1,"watch_ratio"'),
        ('"watch_ratio"', '"more":[{"watch_ratio":7}],"watch_ratio"'),
        ("0.5", "5e-001"),
    ],
)
def test_an_unusual_message_that_can_be_used_is_in_the_columns_too(part: str, other: str) -> None:
    value = LABEL.decode().replace(part, other).encode()
    found, expected = scanned(LABEL, value, LABEL), LABEL_DECODER.decode(value)
    assert found.records == [None, expected, None]
    columns = found.columns
    assert columns is not None
    assert columns.ids(0) == ["e", expected.event_id, "e"]
    assert columns.ids(1) == [7, expected.user_id, 7]
    assert columns.ids(2) == [-3, expected.video_id, -3]
    assert columns.field("watch_ratio") == [0.5, expected.watch_ratio, 0.5]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        b"[]",
        LABEL[:-1],
        LABEL + b"}",
        LABEL[:50],
        LABEL.replace(b'"e"', b'""'),
        LABEL.replace(b'"e"', b'"' + b"e" * 257 + b'"'),
        LABEL.replace(b'"e"', b"null"),
        LABEL.replace(b'"e"', b"1.5"),
        LABEL.replace(b"-3", b"-03"),
        LABEL.replace(b":5,", b":-5,"),
        LABEL.replace(b":5,", b":05,"),
        LABEL.replace(b":5,", b":9007199254740993,"),
        LABEL.replace(b":5,", b":1000000001,"),
        LABEL.replace(b"0.5", b".5"),
        LABEL.replace(b"0.5", b"-0.5"),
        LABEL.replace(b"0.5", b"1000000000.1"),
        LABEL.replace(b"0.5", b"1e99"),
        LABEL.replace(b"0.5", b"1e999"),
        LABEL.replace(b"0.5", b"NaN"),
        LABEL.replace(b"0.5", b'"0.5"'),
        LABEL.replace(b"900", b"true"),
        LABEL.replace(b'"user_id":7,', b""),
    ],
)
def test_what_cannot_be_used_is_refused_for_the_same_reason(value: bytes) -> None:
    found = scanned(LABEL, value, LABEL)
    expected = decode([b"7"], [value], LABEL_DECODER, LATEST)
    assert [found.records[1]] == expected
    assert found.times.tolist() == [5, expected[0].timestamp, 5]
    assert (found.records[0], found.records[2]) == (None, None)


def test_halves_of_two_messages_are_no_message() -> None:
    found = scanned(LABEL[:40], LABEL[40:])
    assert all(isinstance(each, RejectedRecord) for each in found.records)


def test_a_null_and_another_key_are_refused() -> None:
    scanner = ColumnDecoder(LABEL_DECODER, fewest=1)
    keys: list[bytes | None] = [b"7", b"70", None, b"7", b""]
    values: list[bytes | None] = [LABEL, LABEL, LABEL, None, LABEL]
    found = scanner.decode(messages(keys, values), LATEST)
    assert found.records == [None, *decode(keys[1:], values[1:], LABEL_DECODER, LATEST)]


@examples(300)
@given(number=st.floats(0, 1e9) | st.decimals(0, 10**9, allow_nan=False).map(str) | st.integers(0, 10**9))
def test_numbers_have_the_bits_that_the_parser_gives_them(number: object) -> None:
    value = LABEL.replace(b"0.5", str(number).encode())
    columns = scanned(LABEL, value).columns
    assert columns is not None
    try:
        expected = LABEL_DECODER.decode(value).watch_ratio
    except msgspec.DecodeError:
        return
    assert np.array(columns.field("watch_ratio")[1]).tobytes() == np.array(expected).tobytes()


@examples(200)
@given(event_id=st.text() | st.integers(-(2**70), 2**70), further=st.dictionaries(st.text(), st.text()))
def test_any_ids_and_further_fields(event_id: object, further: dict[str, str]) -> None:
    message: dict[str, Any] = further | json.loads(LABEL) | {"event_id": event_id}
    for ensure_ascii in (False, True):
        value = json.dumps(message, ensure_ascii=ensure_ascii).encode("utf-8", "surrogatepass")
        found = scanned(LABEL, value)
        [expected] = decode([b"7"], [value], LABEL_DECODER, LATEST)
        assert found.records[1] in {None, expected}
        if not isinstance(expected, RejectedRecord):
            assert found.columns is not None
            assert found.columns.ids(0) == ["e", expected.event_id]


@pytest.mark.parametrize(
    "changes",
    [
        {"interactions": {"time_unit": "s"}, "labels": {"time_unit": "s"}},
        {"interactions": {"event_id": "/event/id"}, "labels": {"event_id": "/event/id"}},
        {"interactions": {"numbers": {"odd": "/é"}}, "labels": {"value_kind": "boolean"}},
        {
            "features": {"price": {"kind": "number", "field": "/price", "missing": 0.0}},
            "labels": {"time_unit": "us"},
        },
    ],
)
def test_streams_with_other_fields_are_decoded_one_by_one(changes: dict[str, Any]) -> None:
    definition = KUAIREC.model_dump()
    for name, change in changes.items():
        definition[name] |= change
    decoders = InputDecoders.of(Stream.model_validate(definition))
    assert not any(ColumnDecoder(decoder).to_columns for decoder in decoders)
    keys: list[bytes | None] = [b"7"] * FEWEST
    values: list[bytes | None] = [b'{"any":1}'] * FEWEST
    found = ColumnDecoder(decoders.labels).decode(messages(keys, values), LATEST)
    assert found.columns is None
    assert found.records == decode(keys, values, decoders.labels, LATEST)


def test_features_and_weights_that_are_numbers_are_columns() -> None:
    definition = KUAIREC.model_dump()
    definition["features"] = {"price": {"kind": "number", "field": "/price"}}
    definition["labels"] |= {"weight": "/weight"}
    decoders = InputDecoders.of(Stream.model_validate(definition))
    of_labels = ColumnDecoder(decoders.labels, fewest=1)
    assert ColumnDecoder(decoders.interactions).to_columns
    value = LABEL[:-1] + b',"weight":2.5}'
    columns = of_labels.decode(messages([b"7"], [value]), LATEST).columns
    assert columns is not None
    assert columns.field("weight") == [2.5]


def test_a_few_messages_are_decoded_one_by_one() -> None:
    decoder = ColumnDecoder(LABEL_DECODER)
    few = decoder.decode(messages([b"7"], [LABEL]), LATEST)
    many = decoder.decode(messages([b"7"] * FEWEST, [LABEL] * FEWEST), LATEST)
    assert (few.columns, few.records) == (None, [LABEL_DECODER.decode(LABEL)])
    assert many.records == [None] * FEWEST


@examples(50)
@given(cuts=st.lists(st.integers(0, 12), max_size=4), as_records=st.lists(st.booleans(), min_size=5))
def test_pieces_of_either_kind_are_joined(cuts: list[int], as_records: list[bool]) -> None:
    labels = [label(f"e{number}", number, number / 8, number % 3, -number) for number in range(12)]
    values, keys = [*map(msgspec.json.encode, labels)], [str(each.user_id).encode() for each in labels]
    scanner = ColumnDecoder(LABEL_DECODER, fewest=1)
    whole = scanner.decode(messages(keys, values), LATEST).columns
    assert whole is not None
    ends = [0, *sorted(cuts), 12]
    pieces = [
        InputColumns.of(labels[begin:end]) if records else whole.rows(begin, end)
        for begin, end, records in zip(ends, ends[1:], as_records, strict=False)
    ]
    joined = InputColumns.concat(pieces)
    assert joined.ids(0) == [each.event_id for each in labels]
    assert joined.ids(2) == [each.video_id for each in labels]
    assert joined.field("watch_ratio") == [each.watch_ratio for each in labels]


def test_columns_of_no_messages_have_no_ids() -> None:
    assert len(InputColumns.of([])) == 0
    assert InputColumns.of([]).ids(0) == []
    assert InputColumns.of([interaction(1, 5)]).field("video_duration") == [interaction(1, 5).video_duration]
    assert INTERACTION_DECODER.record is not None
