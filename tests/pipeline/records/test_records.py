from __future__ import annotations

import json
import struct
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.features.feature_set import FEATURES
from pipeline.join.records import EarlyLabel
from pipeline.records import outcome_encoder
from pipeline.records.decoding import INTERACTION_DECODER, LABEL_DECODER, RejectedRecord, decode
from pipeline.records.encoding import encode, encode_all, keys_of
from pipeline.records.fields import FEATURES_LENGTH
from pipeline.records.inputs import RawMessage, sizes
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.records.outcome_encoder import (
    LabelFields,
    encode_label_fields,
    prefix_end,
)
from pipeline.records.outputs import EntityCounts, Outcome, Prediction, Share
from pipeline.task.state import SavedLabel

LATEST = 1_000_000
FIELDS: dict[str, Any] = {
    "event_id": "e",
    "user_id": 7,
    "video_id": 3,
    "timestamp": 5,
    "video_duration": 900.5,
}
GOOD = encode(FIELDS)
RECORD = KuaiRecInteraction("e", 7, 3, 5, 900.5)


def decode_one(value: bytes | None, key: bytes | None = b"7") -> KuaiRecInteraction | RejectedRecord:
    [record] = decode([key], [value], INTERACTION_DECODER, LATEST)
    assert isinstance(record, KuaiRecInteraction | RejectedRecord)
    return record


def replaced(field: str, text: bytes) -> bytes:
    return GOOD.replace(encode(field) + b":" + encode(FIELDS[field]), encode(field) + b":" + text)


def without(field: str) -> bytes:
    return encode({name: value for name, value in FIELDS.items() if name != field})


UNDECODABLE = {
    "tombstone": None,
    "empty": b"",
    "whitespace": b" \t\r\n ",
    "no JSON": b"hello",
    "truncated": GOOD[:-1],
    "first half": GOOD[:30],
    "second half": GOOD[30:],
    "half after a comma": b'{"event_id":"e",',
    "trailing comma": GOOD[:-1] + b",}",
    "two objects": GOOD + GOOD,
    "two objects with a space": GOOD + b" " + GOOD,
    "two objects on two lines": GOOD + b"\n" + GOOD,
    "object and zero byte": GOOD + b"\0",
    "byte-order mark": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16"),
    "invalid UTF-8": replaced("event_id", b'"\xff"'),
    "encoded surrogate": replaced("event_id", b'"\xed\xa0\x80"'),
    "lone surrogate": replaced("event_id", rb'"\ud800"'),
    "lone low surrogate": replaced("event_id", rb'"a\uDC00"'),
    "lone surrogate in a truncated value": GOOD[:-1] + rb',"title":"\ud800"',
    "newline in a string": replaced("event_id", b'"a\nb"'),
    "NaN": replaced("video_duration", b"NaN"),
    "Infinity": replaced("video_duration", b"Infinity"),
    "negative Infinity": replaced("video_duration", b"-Infinity"),
    "leading zero": replaced("video_duration", b"0900"),
    "deep nesting": GOOD[:-1] + b',"more":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "endless array": b"[" * 100_000,
    "nesting that some Pythons take": GOOD[:-1] + b',"more":' + b"[" * 501 + b"]" * 501 + b"}",
}
INVALID = {
    "null": b"null",
    "array": b"[]",
    "array of the object": b"[" + GOOD + b"]",
    "string": b'"e"',
    "number": b"17",
    "boolean": b"true",
    "empty object": b"{}",
    **{f"no {field}": without(field) for field in FIELDS},
    **{f"{field} null": replaced(field, b"null") for field in FIELDS},
    **{f"{field} boolean": replaced(field, b"true") for field in FIELDS},
    **{f"{field} array": replaced(field, b"[1]") for field in FIELDS},
    **{f"{field} object": replaced(field, b"{}") for field in FIELDS},
    "number as text": replaced("video_duration", b'"900"'),
    "time as text": replaced("timestamp", b'"2020-07-05"'),
    "time with a fraction": replaced("timestamp", b"5.5"),
    "time as a float": replaced("timestamp", b"5.0"),
    "id as a float": replaced("user_id", b"7.0"),
    "id as an exponent": replaced("user_id", b"7e0"),
    "negative time": replaced("timestamp", b"-1"),
    "negative duration": replaced("video_duration", b"-0.5"),
    "endless duration": replaced("video_duration", b"1e13"),
    "duration beyond floats": replaced("video_duration", b"1e400"),
    "duration of many digits": replaced("video_duration", b"1" + b"0" * 400),
    "time beyond exact floats": replaced("timestamp", str(2**53 + 1).encode()),
    "time of many digits": replaced("timestamp", b"1" + b"0" * 400),
    "id beyond 64 bits": replaced("user_id", str(2**63).encode()),
    "id below 64 bits": replaced("user_id", str(-(2**63) - 1).encode()),
    "empty id": replaced("event_id", b'""'),
    "endless id": replaced("event_id", b'"' + b"a" * 257 + b'"'),
    "a bad duplicate of a field": GOOD[:-1] + b',"video_duration":-1}',
    "a good duplicate of a bad field": b'{"video_duration":-1,' + GOOD[1:],
}
BAD = {
    **{name: (value, "undecodable") for name, value in UNDECODABLE.items()},
    **{name: (value, "invalid") for name, value in INVALID.items()},
    "another's key": (replaced("user_id", b"8"), "wrong_key"),
    "key of a string id": (replaced("user_id", b'"7 "'), "wrong_key"),
    "future": (replaced("timestamp", str(LATEST + 1).encode()), "future"),
}
ACCEPTED = {
    "exponent": (replaced("video_duration", b"9.005E+2"), RECORD),
    "integer for a float": (
        replaced("video_duration", b"900"),
        msgspec.structs.replace(RECORD, video_duration=900),
    ),
    "whitespace around": (b"\r\n " + GOOD + b" \n", RECORD),
    "unknown fields": (GOOD[:-1] + b',"author_id":[1,{"a":null}],"":1}', RECORD),
    "lone surrogate in a field that is ignored": (GOOD[:-1] + rb',"title":"\ud800"}', RECORD),
    "lone surrogates in a name and before text": (
        rb'{"\uDBFF":"\udc00 \ud800\u0041 \\ud800",' + GOOD[1:],
        RECORD,
    ),
    "surrogate pair": (
        replaced("event_id", rb'"\ud83d\ude00"')[:-1] + rb',"title":"\ud800"}',
        msgspec.structs.replace(RECORD, event_id="\U0001f600"),
    ),
    "duplicate of a field": (GOOD[:-1] + b',"event_id":"f"}', msgspec.structs.replace(RECORD, event_id="f")),
    "newlines between fields": (GOOD.replace(b",", b",\n"), RECORD),
    "string id with the key's text": (
        replaced("user_id", b'"7"'),
        msgspec.structs.replace(RECORD, user_id="7"),
    ),
    "latest": (
        replaced("timestamp", str(LATEST).encode()),
        msgspec.structs.replace(RECORD, timestamp=LATEST),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_rejected_record_with_its_fault(name: str) -> None:
    value, fault = BAD[name]
    rejected = decode_one(value)
    assert isinstance(rejected, RejectedRecord)
    assert rejected.fault == fault
    assert rejected.reason


@pytest.mark.parametrize("name", ACCEPTED)
def test_unusual_but_good_input_is_accepted(name: str) -> None:
    value, record = ACCEPTED[name]
    assert decode_one(value) == record


@pytest.mark.parametrize("field", FIELDS)
def test_the_reason_names_the_field(field: str) -> None:
    for value in (without(field), replaced(field, b"null")):
        rejected = decode_one(value)
        assert isinstance(rejected, RejectedRecord)
        assert field in rejected.reason


@pytest.mark.parametrize("key", [None, b"", b"8", b"07", b"\xff", b'"7"'])
def test_a_key_that_is_not_the_users_is_named_with_the_one_expected(key: bytes | None) -> None:
    rejected = decode_one(GOOD, key)
    assert isinstance(rejected, RejectedRecord)
    assert rejected.fault == "wrong_key"
    assert repr(key) in rejected.reason
    assert '"7"' in rejected.reason


def test_labels_have_checks_of_their_own() -> None:
    good = {**FIELDS, "play_duration": 1.0, "watch_ratio": 0.5}
    for field in ("play_duration", "watch_ratio"):
        for value in (-0.1, True, None, "0.5"):
            [record] = decode([b"7"], [encode({**good, field: value})], LABEL_DECODER, LATEST)
            assert isinstance(record, RejectedRecord)
            assert field in record.reason
    [record] = decode([b"7"], [encode(good)], LABEL_DECODER, LATEST)
    assert not isinstance(record, RejectedRecord)


def test_halves_of_an_object_in_two_messages_are_two_bad_messages_whatever_follows() -> None:
    """Counting lines or records would miss this: three messages, three whole objects between them."""
    halves: list[bytes | None] = [GOOD[:15], GOOD[15:], GOOD + GOOD]
    records = decode([b"7"] * 3, halves, INTERACTION_DECODER, LATEST)
    assert [isinstance(record, RejectedRecord) for record in records] == [True, True, True]


mixtures = st.lists(st.one_of(st.none(), st.sampled_from(sorted(BAD))), max_size=30)


@given(mixture=mixtures)
def test_bad_messages_among_good_ones_are_found_and_all_keep_their_order(mixture: list[str | None]) -> None:
    values = [GOOD if name is None else BAD[name][0] for name in mixture]
    records = decode([b"7"] * len(mixture), values, INTERACTION_DECODER, LATEST)
    faults = [record.fault if isinstance(record, RejectedRecord) else None for record in records]
    assert faults == [None if name is None else BAD[name][1] for name in mixture]
    assert all(record == RECORD for record, fault in zip(records, faults, strict=True) if fault is None)


def test_no_messages_are_no_records() -> None:
    assert decode([], [], INTERACTION_DECODER, LATEST) == []


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(
    score=finite, features=st.lists(finite, min_size=FEATURES_LENGTH, max_size=FEATURES_LENGTH), loss=finite
)
def test_floats_come_back_with_the_same_bits(score: float, features: list[float], loss: float) -> None:
    outcome = Outcome(
        event_id="e",
        user_id=1,
        video_id=2,
        timestamp=3,
        score=score,
        probability=None,
        predicted=True,
        features=features,
        model_version=0,
        prediction_sequence=0,
        watch_ratio=None,
        label=None,
        label_timestamp=None,
        correct=None,
        loss=loss,
        status="expired",
        sequence=0,
    )
    again = msgspec.json.decode(encode(outcome), type=Outcome)
    assert again.loss is not None
    assert list(map(bits, [again.score, again.loss, *again.features])) == list(
        map(bits, [score, loss, *features])
    )
    assert encode(again) == encode(outcome)


def test_records_with_another_number_of_features_are_refused() -> None:
    assert {len(names) for names in FEATURES.values()} == {FEATURES_LENGTH}
    for length in (0, FEATURES_LENGTH - 1, FEATURES_LENGTH + 1):
        prediction = Prediction("e", 7, 3, 5, 0.5, None, True, [0.5] * length, model_version=0, sequence=9)
        with pytest.raises(msgspec.ValidationError, match=r"\$.features"):
            msgspec.json.decode(encode(prediction), type=Prediction)


@given(duration=st.floats(min_value=0, max_value=1e12))
def test_input_floats_have_the_bits_that_were_written(duration: float) -> None:
    record = decode_one(encode({**FIELDS, "video_duration": duration}))
    assert isinstance(record, KuaiRecInteraction)
    assert bits(record.video_duration) == bits(duration)


@given(
    identifier=st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(min_size=1, max_size=256)),
)
def test_ids_keep_their_type_and_value(identifier: int | str) -> None:
    value = encode({**FIELDS, "event_id": identifier, "user_id": identifier})
    record = decode_one(value, str(identifier).encode())
    assert isinstance(record, KuaiRecInteraction)
    assert (record.event_id, record.user_id) == (identifier, identifier)
    assert type(record.user_id) is type(identifier)


@given(users=st.lists(st.integers(-(2**63), 2**63 - 1) | st.text(min_size=1, max_size=9) | st.just("7")))
def test_keys_are_what_users_are_called(users: list[int | str]) -> None:
    assert keys_of(users) == [str(user).encode() for user in users]


@pytest.mark.parametrize("users", [["7"], [7, "7"], ["\n"], ["7\n8"], ['"']])
def test_keys_of_users_whose_names_look_like_something_else(users: list[int | str]) -> None:
    assert keys_of(users) == [str(user).encode() for user in users]


def test_sizes_are_of_key_value_and_headers() -> None:
    keys, values = [b"7", None, b"77", None], [b"value", b"v", None, None]
    assert sizes(keys, values, [None] * 4).tolist() == [6, 1, 2, 0]
    headers = [[("name", b"abc"), ("none", None)], None, [], [("é", b"")]]
    assert sizes(keys, values, headers).tolist() == [6 + 4 + 3 + 4, 1, 2, 1]
    assert sizes([], [], []).tolist() == []


predictions = st.builds(
    Prediction,
    event_id=st.sampled_from(["e", '"sequence":', 7]),
    user_id=st.integers(0, 9),
    video_id=st.text(min_size=1, max_size=3),
    timestamp=st.integers(0, 9),
    score=finite,
    probability=st.none() | finite,
    predicted=st.booleans(),
    features=st.lists(finite, max_size=3),
    model_version=st.integers(0, 9),
    sequence=st.integers(0, 1_000),
    challengers=st.none() | st.dictionaries(st.sampled_from("abc"), finite, min_size=1),
    asked=st.none() | st.booleans(),
)


@given(
    prediction=predictions,
    ratio=st.none() | finite,
    label=st.none() | st.booleans(),
    loss=st.none() | finite,
    sequence=st.integers(0, 1_000),
)
def test_an_outcome_made_of_its_prediction_as_written_is_the_outcome(
    prediction: Prediction, ratio: float | None, label: bool | None, loss: float | None, sequence: int
) -> None:
    fields = LabelFields(
        prediction.sequence,
        ratio,
        label,
        5,
        label,
        loss,
        "labelled",
        sequence,
        challengers=prediction.challengers,
        asked=prediction.asked,
    )
    text = encode(prediction)
    [written] = encode_label_fields([fields])
    in_common = msgspec.structs.asdict(prediction)
    del in_common["sequence"]
    whole = encode(Outcome(**in_common | msgspec.structs.asdict(fields)))
    assert text[: prefix_end(text)] + written == whole


def test_label_fields_are_the_fields_of_an_outcome_that_its_prediction_does_not_have() -> None:
    outcome, prediction = msgspec.structs.fields(Outcome), msgspec.structs.fields(Prediction)
    names = [field.name for field in prediction]
    in_common = names[: names.index("sequence")]
    assert [field.name for field in outcome[: len(in_common)]] == in_common
    label_fields = [(field.name, field.default) for field in msgspec.structs.fields(LabelFields)]
    assert label_fields == [(field.name, field.default) for field in outcome[len(in_common) :]]


shares = st.builds(Share, st.just(0), st.just(0), st.just(1), st.just([]), st.just([]))
label_field_records = st.builds(
    LabelFields,
    prediction_sequence=st.integers(0, 9),
    watch_ratio=st.none() | finite,
    label=st.none() | st.booleans(),
    label_timestamp=st.none() | st.integers(0, 9),
    correct=st.none() | st.booleans(),
    loss=st.none() | finite,
    status=st.sampled_from(["labelled", "expired"]),
    sequence=st.integers(0, 9),
    shared=st.none() | st.lists(shares, min_size=1, max_size=2),
)


@given(written=st.lists(label_field_records, max_size=5), together=st.integers(1, 3))
def test_label_fields_encoded_together_are_those_encoded_alone(
    written: list[LabelFields], together: int
) -> None:
    with patch.object(outcome_encoder, "CHUNK", together):
        assert list(encode_label_fields(written)) == [encode(label_fields)[1:] for label_fields in written]


@given(records=st.lists(predictions, max_size=5))
def test_records_written_together_are_those_written_alone(records: list[Prediction]) -> None:
    assert encode_all(records) == [encode(record) for record in records]


def test_line_feeds_within_a_record_do_not_end_it() -> None:
    prediction = Prediction("a\nb}\n{c", 7, "\n", 5, 0.5, None, True, [0.25], model_version=0, sequence=9)
    assert encode_all([prediction, prediction]) == [encode(prediction)] * 2
    taken = [Share(0, 0, 1, [EntityCounts("a}\n{b", 1, 1, 1.0)], [])]
    label_fields = LabelFields(9, 0.8, True, 6, True, 0.2, "labelled", 4, taken)
    assert list(encode_label_fields([label_fields, label_fields])) == [encode(label_fields)[1:]] * 2


def test_half_a_surrogate_pair_in_a_field_that_is_used_is_named() -> None:
    record = decode_one(replaced("event_id", rb'"\ud800"')[:-1] + rb',"title":"\udc00"}')
    assert isinstance(record, RejectedRecord)
    assert record.reason == "event_id has half a surrogate pair, which stands for no character"


@given(st.text(alphabet=st.characters(codec=None, categories=["Cs", "Lu", "Po"]), max_size=8))
def test_any_escaped_text_may_stand_in_a_field_that_is_ignored(text: str) -> None:
    title = json.dumps(text).encode()
    assert decode_one(GOOD[:-1] + b',"title":' + title + b"}") == RECORD


def test_a_label_with_half_a_surrogate_pair_can_wait_in_a_state_record() -> None:
    label = {name: value for name, value in FIELDS.items() if name != "video_duration"}
    value = encode(label | {"play_duration": 5.5, "watch_ratio": 0.5})[:-1] + rb',"title":"\ud800"}'
    [record] = decode([b"7"], [value], LABEL_DECODER, LATEST)
    assert isinstance(record, WatchLabel)
    early = EarlyLabel(record, RawMessage("watch-labels", 0, 0, b"7", value))
    saved = msgspec.json.decode(encode(SavedLabel.save(early)), type=SavedLabel)
    assert saved.restore().label == record
