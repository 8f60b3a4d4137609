"""What a check of a stream says of messages that fit, and of those that do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pipeline.config.stream import KUAIREC, Stream
from pipeline.records.encoding import encode
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import RawMessage
from pipeline.tools.stream import Sample, StreamCheck, check, render
from pipeline.tools.stream.checking import unit_of
from tests.support.builders import WEIGHTED

NOW = 1_772_366_400_000
TOPICS = ("interactions", "watch-labels")


def play(number: int, **changes: Any) -> dict[str, Any]:
    ids = {"event_id": number, "user_id": number % 3, "video_id": number % 5, "timestamp": NOW + number}
    return ids | {"video_duration": 9_000.0} | changes


def watch(number: int, **changes: Any) -> dict[str, Any]:
    ratio = 0.5 + number % 2
    return play(number) | {"timestamp": NOW + 9_000, "play_duration": 1.0, "watch_ratio": ratio} | changes


def messages(topic: str, values: Sequence[Any]) -> list[RawMessage]:
    return [
        RawMessage(topic, 0, offset, str(value.get("user_id")).encode(), encode(value))
        for offset, value in enumerate(values)
    ]


def checked(
    interactions: Sequence[Any], labels: Sequence[Any], stream: Stream = KUAIREC, latest: int = 2 * NOW
) -> StreamCheck:
    sample = Sample(messages(TOPICS[0], interactions), messages(TOPICS[1], labels))
    return check(stream, InputDecoders.of(stream), sample, TOPICS, latest)


def text(found: StreamCheck) -> str:
    console = Console(width=200, highlight=False)
    with console.capture() as captured:
        console.print(render(found))
    return captured.get()


PLAYS, WATCHES = [play(number) for number in range(10)], [watch(number) for number in range(10)]


def with_unit(unit: str, factor: float) -> tuple[Stream, list[Any], list[Any]]:
    """Return KuaiRec's stream with a unit, and messages whose times are milliseconds times a factor."""
    definition = KUAIREC.model_dump()
    definition["interactions"]["time_unit"] = definition["labels"]["time_unit"] = unit
    plays, watches = (
        [value | {"timestamp": int(value["timestamp"] * factor)} for value in values]
        for values in (PLAYS, WATCHES)
    )
    return Stream.model_validate(definition), plays, watches


def test_a_clock_in_1970_is_named_as_a_worker_does() -> None:
    plays = [each | {"timestamp": 7} if number == 5 else each for number, each in enumerate(PLAYS)]
    [reason] = checked(plays, WATCHES).interactions.reasons
    assert (reason.fault, reason.messages, reason.offset) == ("past", 1, 5)
    assert "counts as a wrong clock" in reason.reason


def test_everything_fits() -> None:
    found = checked(PLAYS, WATCHES)
    assert found.fits
    assert (found.joined, found.positive) == (10, 5)
    assert (found.interactions.usable, found.interactions.first) == (10, NOW)
    names = [field.name for field in found.labels.fields]
    assert names[:3] == ["event_id", "entities.user_id", "entities.video_id"]
    assert names[3:] == ["time", "numbers.play_duration", "value"]
    assert all(field.found == 10 for field in found.labels.fields)
    assert "10 of 10 labels are of events that were read, 5 are positive (50.0%)" in text(found)
    assert text(found).rstrip().endswith("kuairec: everything fits")


def test_each_reason_is_counted_with_an_example() -> None:
    broken = [play(10, video_id=1.5), play(11, video_id=2.5), play(12, timestamp=3 * NOW), {"user_id": 7}]
    found = checked([*PLAYS, *broken], WATCHES)
    assert not found.fits
    assert [(reason.fault, reason.messages, reason.offset) for reason in found.interactions.reasons] == [
        ("invalid", 2, 10),
        ("future", 1, 12),
        ("invalid", 1, 13),
    ]
    by_name = {field.name: field for field in found.interactions.fields}
    assert by_name["entities.video_id"].kinds == {"whole number": 10 + 1, "number": 2}
    assert by_name["event_id"].found == 13
    shown = text(found)
    assert "2 invalid  Expected `int | str`, got `float` - at `$.video_id`" in shown
    assert "(partition 0, offset 10)" in shown
    assert "10 of 14 can be used" in shown


@pytest.mark.parametrize(
    ("said", "factor", "looks"), [("ms", 0.001, "s"), ("ms", 1000, "us"), ("s", 1, "ms"), ("us", 0.001, "s")]
)
def test_a_clock_in_another_unit_is_named(said: str, factor: float, looks: str) -> None:
    found = checked(*with_unit(said, factor)[1:], with_unit(said, factor)[0])
    assert any(
        remark.startswith(f"times of interactions look like {looks}, such as")
        and remark.endswith(f'said to be {said}: set interactions.time_unit = "{looks}"')
        for remark in found.remarks
    )
    assert any(f'set labels.time_unit = "{looks}"' in remark for remark in found.remarks)


def test_an_event_id_that_repeats_across_ids_is_named() -> None:
    [remark] = checked([*PLAYS, play(3, video_id=4)], WATCHES).remarks
    assert remark.startswith("event 3 has different ids in two messages: (0, 4) and (0, 3).")
    assert checked([*PLAYS, play(3)], WATCHES).fits


def test_labels_that_find_no_event_or_another_one_are_named() -> None:
    [remark] = checked(PLAYS, [watch(number, event_id=f"e{number}") for number in range(10)]).remarks
    assert remark.startswith("none of 10 labels is of an event that was read, such as event 'e0'")
    [remark] = checked(PLAYS, [*WATCHES, watch(9, video_id=0)]).remarks
    assert remark == (
        "the label of event 9 is of (0, 0), its interaction of (0, 4): such a label becomes a dead letter"
    )


@pytest.mark.parametrize(("ratio", "which"), [(0.1, "none"), (1.0, "each")])
def test_labels_that_are_all_the_same_are_named(ratio: float, which: str) -> None:
    [remark] = checked(PLAYS, [watch(number, watch_ratio=ratio) for number in range(10)]).remarks
    assert remark.startswith(f"{which} of 10 labels is above 0.75")


def test_nothing_to_read_is_no_mistake_of_the_definition() -> None:
    found = checked([], [])
    assert found.fits
    assert "0 of 0 can be used" in text(found)


def test_units_of_times() -> None:
    assert [unit_of(time) for time in (1e20, True, None, "soon", "2026-03-01")] == [None] * 4 + ["iso8601"]


hostile = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    values=st.lists(
        st.none()
        | st.binary(max_size=50)
        | st.dictionaries(st.sampled_from(["event_id", "timestamp", "user_id"]), hostile).map(
            msgspec.json.encode
        ),
        max_size=4,
    )
)
def test_hostile_messages_are_only_counted(values: list[bytes | None]) -> None:
    sample = [RawMessage("t", 0, offset, b"7", value) for offset, value in enumerate(values)]
    found = check(KUAIREC, InputDecoders.of(KUAIREC), Sample(sample, sample), TOPICS, NOW)
    assert found.interactions.usable == 0
    assert sum(reason.messages for reason in found.interactions.reasons) == len(values)
    text(found)


def test_weights_are_looked_at_like_other_fields() -> None:
    watches = [each | {"weight": number} for number, each in enumerate(WATCHES)]
    found = checked(PLAYS, watches, WEIGHTED)
    assert found.fits
    [field] = [each for each in found.labels.fields if each.name == "weight"]
    assert (field.pointer, field.found, field.kinds) == ("/weight", 10, {"whole number": 10})
    lacking = checked(PLAYS, [*watches[:9], WATCHES[9]], WEIGHTED)
    assert [each.reason for each in lacking.labels.reasons] == ["Object missing required field `weight`"]
    assert not lacking.fits


def test_labels_none_of_which_weighs_anything_are_remarked() -> None:
    found = checked(PLAYS, [each | {"weight": 0} for each in WATCHES], WEIGHTED)
    assert any("each of 10 labels has the weight 0" in remark for remark in found.remarks)
