"""A state record that no worker can have written is refused, and the field named."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.errors import StateError
from pipeline.records.encoding import encode_json
from pipeline.recovery.state_check import StateOrigin, UnusableStateError, decode_state
from pipeline.task.state import STATE_VERSION
from tests.fuzz.state import STATE_OFFSET, written, written_log

ORIGIN = StateOrigin("checkpoints", 0, STATE_OFFSET, "watch-labels")
LARGE = 10**18


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    record = json.loads(written().value)
    change(record)
    return json.dumps(record).encode()


def epoch(predictions: int) -> dict[str, Any]:
    return {"versions": {}, "predictions": predictions, "outcomes": 0}


def test_a_record_of_a_worker_is_accepted() -> None:
    state = decode_state(written().value, ORIGIN)
    assert state == written_log().state
    assert state.waiting
    assert state.snapshot is not None
    assert state.previous is not None
    assert state.libraries
    assert encode_json(state) == written().value


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        (STATE_VERSION + 1, "A newer version of this program wrote it: upgrade to that one"),
        (STATE_VERSION - 1, "Use the version of this program that wrote it"),
    ],
)
def test_a_record_of_another_version_is_refused_and_both_are_named(version: int, remedy: str) -> None:
    value = changed(lambda record: record.update(version=version, counters="of another kind"))
    with pytest.raises(StateError) as error:
        decode_state(value, ORIGIN)
    assert not isinstance(error.value, UnusableStateError)  # which would be derived anew
    said = (
        f"the state record of partition 0 has version {version}, this program reads version {STATE_VERSION}"
    )
    assert str(error.value).startswith(f"{said}. {remedy}")
    assert "docs/upgrading.md" in str(error.value)


def test_a_field_of_a_version_to_come_is_ignored() -> None:
    assert decode_state(changed(lambda record: record.update(new=[1])), ORIGIN) == written().state


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda record: record.update(partition=1), "partition is 1"),
        (lambda record: record.update(predictions=LARGE), "pending is"),
        (lambda record: record.update(pending_from=LARGE), "pending_from is"),
        (lambda record: record.update(outcomes=record["predictions"] + 1), "pending is"),
        (lambda record: record.update(outcomes_from=LARGE), "outcomes_from is"),
        (lambda record: record.update(outcome_offset=2**63), "outcome_offset is"),
        (lambda record: record.update(stream_time=LARGE), "stream_time is"),
        (lambda record: record["labels"].update(clock=-2), r"labels\.clock is -2"),
        (lambda record: record["counters"].update(late=-1), r"counters\.late is -1"),
        (lambda record: record["snapshot"].update(folded=LARGE), r"snapshot\.folded is"),
        (lambda record: record["snapshot"].update(chunks=[-1]), r"snapshot\.chunks are not"),
        (lambda record: record["snapshot"].update(chunks=[-2, 0]), r"snapshot\.chunks are not"),
        (lambda record: record["snapshot"].update(chunks=[]), r"snapshot\.chunks are not"),
        (lambda record: record["snapshot"].update(chunks=[0] * 100_000), "and 99995 more"),
        (lambda record: record["previous"].update(chunks=[STATE_OFFSET]), r"previous\.chunks are not"),
        (lambda record: record["previous"].update(slot=2), r"previous\.slot is 2"),
        (lambda record: record["previous"].update(sha256="0"), r"previous\.sha256 is '0'"),
        (lambda record: record["previous"].update(outcome_offset=-1), r"previous\.outcome_offset is"),
        (lambda record: record["waiting"][0].update(value="e30="), r"waiting\[0\]\.value is no label"),
        (lambda record: record["waiting"][0].update(topic="others"), r"waiting\[0\] is of 'others'"),
        (lambda record: record["waiting"][0].update(key=None), r"waiting\[0\]\.key is not"),
        (lambda record: record["waiting"][0].update(offset=LARGE), r"waiting\[0\]\.offset is"),
        (lambda record: record["waiting"].append(record["waiting"][0]), r"waiting\[3\]\.offset is"),
        (
            lambda record: record.update(earlier=[{"settings": {}, "predictions": LARGE, "outcomes": 0}]),
            "earlier ends after",
        ),
        (lambda record: record.update(published=LARGE), "published is"),
        (lambda record: record.update(libraries={"versions": {"numpy": "1\n2"}}), r"\$\.libraries"),
        (lambda record: record.update(libraries={"versions": {"numpy": "1" * 201}}), r"\$\.libraries"),
        (lambda record: record.update(libraries={"versions": {str(n): "1" for n in range(17)}}), "libraries"),
        (
            lambda record: record.update(libraries={"versions": {}, "earlier": [epoch(0)] * 9}),
            r"\$\.libraries\.earlier",
        ),
        (
            lambda record: record.update(libraries={"versions": {}, "earlier": [epoch(LARGE)]}),
            r"libraries\.earlier\[0\] ends after",
        ),
        (
            lambda record: record.update(libraries={"versions": {}, "earlier": [epoch(9), epoch(8)]}),
            r"libraries\.earlier\[1\] ends after 8 predictions",
        ),
        (
            lambda record: record.update(taken={"7": 1}, settings={"partitions": "2"}),
            "taken names partition 7",
        ),
        (lambda record: record.pop("counters"), "counters"),
        (lambda record: record.update(waiting={}), r"\$\.waiting"),
    ],
)
def test_a_field_that_no_worker_writes_is_named(
    change: Callable[[dict[str, Any]], object], field: str
) -> None:
    with pytest.raises(StateError, match=f"no worker wrote this state record: .*{field}"):
        decode_state(changed(change), ORIGIN)


def test_a_record_that_no_broker_takes_by_default_is_not_decoded() -> None:
    with pytest.raises(StateError, match="it has 8388609 bytes, more than 8388608"):
        decode_state(b" " * (8 * 2**20 + 1), ORIGIN)


def test_too_deep_nesting_is_refused() -> None:
    deep = b'{"version":3,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(StateError, match="no worker wrote this state record"):
        decode_state(deep, ORIGIN)


def test_more_early_labels_than_any_setting_allows_are_refused() -> None:
    def swell(record: dict[str, Any]) -> None:
        [saved, *_] = record["waiting"]
        saved["headers"] = [["x", "A" * 4] for _ in range(200_000)]

    with pytest.raises(StateError, match=r"waiting has .* bytes, more than 768000"):
        decode_state(changed(swell), ORIGIN)
