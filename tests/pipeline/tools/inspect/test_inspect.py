from __future__ import annotations

import json
import re
from io import StringIO

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

from pipeline.errors import ConfigError
from pipeline.features.feature_set import EFFECTS
from pipeline.records.encoding import encode
from pipeline.records.fields import FEATURES_LENGTH
from pipeline.records.names import ERROR_HEADERS
from pipeline.records.outputs import EntityCounts, Example, Outcome, Prediction, Share
from pipeline.task.state import SnapshotReference
from pipeline.tools.inspect.kinds import Kind
from pipeline.tools.inspect.objects import as_object
from pipeline.tools.inspect.readable import CUT, printable
from pipeline.tools.inspect.record_text import show
from pipeline.tools.inspect.start import At, Last, Since, parse_start
from tests.support.builders import new_task

PREDICTION = Prediction("e1", 7, 3, 1_000, 0.25, 0.562, True, [0.5] * FEATURES_LENGTH, 4, 5)
OUTCOME = Outcome(
    event_id="e1",
    user_id=7,
    video_id=3,
    timestamp=1_000,
    score=0.25,
    probability=0.562,
    predicted=True,
    features=[0.5] * FEATURES_LENGTH,
    model_version=4,
    prediction_sequence=5,
    watch_ratio=0.5,
    label=False,
    label_timestamp=3_000,
    correct=False,
    loss=0.8,
    status="labelled",
    sequence=4,
)
HOSTILE = "\x1b[2J[bold]\r\n\u202e"


def message(value: bytes | None, key: bytes | None = b"7", **headers: bytes) -> Message:
    named: list[tuple[str, str | bytes | None]] = [
        (name.replace("streams_", ERROR_HEADERS), content) for name, content in headers.items()
    ]
    return Message(
        topic="t",
        partition=2,
        offset=31,
        key=key,
        value=value,
        headers=named,
        timestamp=(TIMESTAMP_CREATE_TIME, 1_000),
    )


def rendered(kind: Kind, raw: Message, detail: bool = False) -> str:
    console = Console(file=StringIO(), soft_wrap=True, highlight=False)
    console.print(show(as_object(kind, raw), detail=detail, features=EFFECTS))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("0", At(0)),
        ("-0", Last(0)),
        ("-7", Last(7)),
        ("beginning", At(0)),
        ("1970-01-02", Since(86_400_000)),
        ("1970-01-01T00:00:01.5", Since(1_500)),
        ("1970-01-01T01:00+01:00", Since(0)),
    ],
)
def test_a_start_is_an_offset_a_number_from_the_end_or_a_time(text: str, start: object) -> None:
    found = parse_start(text)
    assert (type(found), found) == (type(start), start)


@pytest.mark.parametrize("text", ["", "end", "--3", "1.5", "2020-13-01", "9" * 30])
def test_anything_else_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(ConfigError, match="accepted are an offset, -N"):
        parse_start(text)


@given(st.text())
def test_no_text_can_move_the_cursor(text: str) -> None:
    assert printable(text).isprintable()
    assert len(printable(text)) <= CUT


@given(st.sampled_from(Kind), st.binary(max_size=100) | st.none(), st.binary(max_size=20) | st.none())
def test_any_message_can_be_shown_and_is_one_json_object(
    kind: Kind, value: bytes | None, key: bytes | None
) -> None:
    raw = message(value, key)
    assert all(line.isprintable() for line in rendered(kind, raw).splitlines())
    found = json.loads(json.dumps(as_object(kind, raw)))
    assert (found["partition"], found["offset"], found["timestamp"]) == (2, 31, 1_000)


def test_a_prediction_is_a_line_and_in_detail_all_its_fields() -> None:
    raw = message(encode(PREDICTION))
    [line] = rendered(Kind.PREDICTIONS, raw).splitlines()
    assert line.startswith("      2:31  1970-01-01 00:00:01.000  event_id e1  user_id 7  video_id 3  ")
    assert "  score 0.25  probability 0.562  predicted true  features [10]  " in line
    detailed = rendered(Kind.PREDICTIONS, raw, detail=True)
    for name in (*EFFECTS, *(field for field in json.loads(encode(PREDICTION)) if field != "features")):
        assert f"{name} " in detailed, "its value stands apart"


def test_a_line_leaves_out_what_is_null_and_detail_does_not() -> None:
    unknown = dict.fromkeys(("watch_ratio", "label", "label_timestamp", "correct", "loss"))
    raw = message(encode(replace(OUTCOME, status="expired", **unknown)))
    line, detailed = rendered(Kind.OUTCOMES, raw), rendered(Kind.OUTCOMES, raw, detail=True)
    assert "  status expired" in line
    assert "watch_ratio" not in line
    assert re.search("^ +watch_ratio +null$", detailed, re.MULTILINE)


def test_ids_cannot_change_the_terminal_either() -> None:
    lines = rendered(
        Kind.OUTCOMES, message(encode(replace(OUTCOME, event_id=HOSTILE))), detail=True
    ).splitlines()
    assert all(line.isprintable() for line in lines)
    assert any(line.endswith(r" \x1b[2J[bold]\r\n\u202e") for line in lines)


def test_a_record_that_cannot_be_decoded_is_shown_as_it_is() -> None:
    text = rendered(Kind.PREDICTIONS, message(b"{" + HOSTILE.encode()))
    assert "cannot be decoded  key 7  value {" in text
    assert r"{\x1b[2J" in text
    assert "value //4=" in rendered(Kind.PREDICTIONS, message(b"\xff\xfe"))


def test_a_dead_letter_shows_reason_origin_and_raw_bytes() -> None:
    raw = message(
        b"\xff{" + HOSTILE.encode(),
        key=None,
        trace=b"abc",
        streams_exception=b"invalid",
        streams_message=b"too [red]bad",
        streams_topic=b"interactions",
        streams_partition=b"1",
        streams_offset=b"77",
    )
    text = rendered(Kind.DEAD_LETTERS, raw)
    origin = "source.topic interactions  source.partition 1  source.offset 77"
    assert f"fault invalid  reason too [red]bad  {origin}  value " in text
    assert "headers [1]" in text
    assert re.search("headers.0.value +abc$", rendered(Kind.DEAD_LETTERS, raw, detail=True), re.MULTILINE)
    found = as_object(Kind.DEAD_LETTERS, raw)
    assert found["encoding"] == "base64"
    assert found["fault"] == "invalid"
    assert found["source"] == {"topic": "interactions", "partition": 1, "offset": 77}
    assert found["headers"] == [{"name": "trace", "value": "abc", "encoding": "utf-8"}]


def test_json_of_a_record_holds_its_value() -> None:
    found = as_object(Kind.PREDICTIONS, message(encode(PREDICTION)))
    assert found["value"] == json.loads(encode(PREDICTION))
    assert (found["key"], found["encoding"]) == ("7", "json")


def test_a_state_record_shows_counters_positions_and_where_the_snapshot_is() -> None:
    task = new_task(partition=2)
    task.counters["late"] = 1_234
    task.snapshot_written(SnapshotReference([40, 41], "ab" * 32, 1, 900, 17))
    text = rendered(Kind.CHECKPOINTS, message(encode(task.state({})), key=b"2/state"), detail=True)
    for part in ("counters.late +1234", "snapshot.slot +1", "snapshot.chunks.1 +41", "labels.offset +0"):
        assert re.search(f"^ +{part}$", text, re.MULTILINE)


def test_a_snapshot_chunk_is_shown_by_its_size_alone() -> None:
    raw = message(b"x" * 5_000, key=b"2/snapshot/1/3")
    assert "snapshot.slot 1  snapshot.number 3  bytes 5000" in rendered(Kind.CHECKPOINTS, raw)
    found = as_object(Kind.CHECKPOINTS, raw)
    assert (found["snapshot"], found["bytes"]) == ({"slot": 1, "number": 3}, 5_000)
    assert "value" not in found


def test_a_share_shows_its_range_of_outcomes_and_what_is_in_it() -> None:
    videos = [EntityCounts(3, 4, 1, 2.0), EntityCounts(HOSTILE, 1, 1, 1.5)]
    examples = [Example(7, 3, 1_000, [0.5] * FEATURES_LENGTH, label=False, watch_ratio=0.5)]
    raw = message(encode(Share(1, since=1_200, until=1_250, videos=videos, examples=examples)))
    [line] = rendered(Kind.SHARED, raw).splitlines()
    assert "since 1200  until 1250  videos [2]  examples [1]" in line
    detailed = rendered(Kind.SHARED, raw, detail=True)
    assert re.search(r"^ +videos\.0\.1 +4$", detailed, re.MULTILINE)
    assert "\x1b" not in detailed
    assert as_object(Kind.SHARED, raw)["value"]["until"] == 1_250
