"""A group that an earlier release began goes on under this one: `tests/upgrades` has logs of such groups."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipeline.records.names import is_state_key
from tests.integration.harness import Pipeline, until
from tests.support.forked import run_command
from tests.upgrades.stored_log import (
    FOLDER,
    SUFFIX,
    StoredHeader,
    StoredLog,
    StoredMessage,
    StoredPartition,
    StoredRecord,
    dump,
    inputs_done,
    load,
)

LOGS = sorted(FOLDER.glob(f"*{SUFFIX}"))
WINDOW = 30 * 60_000
"""Milliseconds that predictions wait for their label in the stored groups."""


def last_states(stored: StoredLog) -> list[dict[str, Any]]:
    """The state records that the group goes on from, by partition."""
    checkpoints = [log for log in stored.logs if log.topic.endswith("checkpoints")]
    return [
        json.loads([each.value or b"" for each in log.records if is_state_key(each.key)][-1])
        for log in checkpoints
    ]


def values_of(stored: StoredLog, topic: str) -> list[dict[str, Any]]:
    return [
        json.loads(record.value or b"")
        for log in stored.logs
        if log.topic == stored.prefix + topic
        for record in log.records
    ]


def expected_labels(stored: StoredLog, waiting: dict[object, dict[str, Any]]) -> dict[object, float | None]:
    """The label that each waiting prediction has to be joined with, found by looking at all labels."""
    records: list[StoredRecord | StoredMessage] = [
        record for log in stored.logs if log.topic == f"{stored.prefix}watch-labels" for record in log.records
    ]
    records += [message for message in stored.rest if message.topic == f"{stored.prefix}watch-labels"]
    found: dict[object, float | None] = dict.fromkeys(waiting)
    for record in sorted(records, key=lambda each: each.timestamp):
        label = json.loads(record.value or b"")
        prediction = waiting.get(label["event_id"])
        if (
            prediction is not None
            and found[label["event_id"]] is None
            and all(label.get(name) == prediction[name] for name in ("user_id", "video_id"))
            and label["timestamp"] <= prediction["timestamp"] + WINDOW
        ):
            found[label["event_id"]] = label["watch_ratio"]
    return found


def forks(pipeline: Pipeline, *command: str) -> dict[str, Any]:
    """The answer of a command."""
    kafka = pipeline.kafka
    where = ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group, "--json"]
    done = run_command(*command, *where, environment=pipeline.environment)
    assert done.returncode == 0, (done.stdout, done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_there_is_a_log_of_an_earlier_release() -> None:
    assert LOGS
    assert sum(file.stat().st_size for file in LOGS) < 1_000_000


@pytest.mark.parametrize("file", LOGS, ids=lambda file: file.name.removesuffix(SUFFIX))
def test_a_group_of_an_earlier_release_goes_on_and_says_from_where_bits_are_new(
    bootstrap: str, tmp_path: Path, file: Path
) -> None:
    stored = StoredLog.read(file)
    before = last_states(stored)
    assert len(before) == stored.partitions == 2
    for state in before:
        assert 0 < state["snapshot"]["folded"] < state["outcomes"]
        assert state["previous"]
        assert state["pending"]
    assert any(state["waiting"] for state in before)
    assert values_of(stored, "shared")
    closed = {outcome["event_id"] for outcome in values_of(stored, "outcomes")}
    waiting = {
        prediction["event_id"]: prediction
        for prediction in values_of(stored, "predictions")
        if prediction["event_id"] not in closed
    }
    assert len(waiting) == sum(state["pending"] for state in before)

    pipeline = load(stored, bootstrap, tmp_path)
    assert dump(pipeline) == (stored.logs, stored.offsets)
    topics, environment = pipeline.topics, pipeline.environment
    messages = stored.messages()
    labels = [message for message in messages if message.topic == topics.labels]
    later = labels[len(labels) // 2 :]
    pipeline.produce(message for message in messages if message not in later)
    pipeline.environment = environment | {"FORKS_JOIN__MAX_IDLE": "1h"}
    with pipeline.follow(topics.outcomes) as follower:
        killed = pipeline.start_worker()
        until(partial(follower.reached, len(closed) + 50), "outcomes of this release", killed)
        killed.kill()
        killed.wait()
    log = pipeline.log_of("worker").read_text()
    assert "snapshot unusable" not in log
    restored = {
        int(number): (int(predictions), int(outcomes))
        for outcomes, number, predictions in re.findall(
            r"restored\s+outcomes=(\d+) partition=(\d+) predictions=(\d+)", log
        )
    }
    taken_over = {state["partition"]: (state["predictions"], state["outcomes"]) for state in before}
    assert restored == taken_over
    said = {
        int(number): (int(predictions), int(outcomes))
        for outcomes, number, predictions in re.findall(
            r"outputs have other last bits from here on.*?outcomes_before=(\d+) partition=(\d+) "
            r"predictions_before=(\d+)",
            log,
        )
    }
    assert said == taken_over

    pipeline.environment = environment
    pipeline.produce(later)
    with pipeline.worker() as worker:
        until(partial(inputs_done, pipeline), "the end of the inputs", worker)
    until(pipeline.settled, "the end of all transactions")

    outcomes = pipeline.read_json(topics.outcomes)
    events = [outcome["event_id"] for outcome in outcomes]
    assert len(set(events)) == len(events) > len(closed) + 50
    predicted = [prediction["event_id"] for prediction in pipeline.read_json(topics.predictions)]
    assert len(set(predicted)) == len(predicted)
    joined = {outcome["event_id"]: outcome["watch_ratio"] for outcome in outcomes}
    assert {event: joined[event] for event in waiting} == expected_labels(stored, waiting)
    after, _ = dump(pipeline)
    for earlier, grown in zip(stored.logs, after, strict=True):
        assert (earlier.topic, earlier.partition) == (grown.topic, grown.partition)
        if not earlier.topic.endswith("checkpoints"):  # compaction
            assert grown.records[: len(earlier.records)] == earlier.records
    check_commands(pipeline, before)


def check_commands(pipeline: Pipeline, before: list[dict[str, Any]]) -> None:
    """Audit and rebuild know which outputs are of the arithmetic before."""
    audited = forks(pipeline, "audit")
    assert audited["differences"] == 0
    for part, state in zip(audited["partitions"], before, strict=True):
        [epoch] = part["other_libraries"]
        assert epoch["other_arithmetic"]
        assert epoch["predictions_until"] == state["predictions"]
        assert epoch["outcomes_until"] == state["outcomes"]
        checked = part["checked"]
        assert checked["predictions made with another arithmetic, not derived again"] == state["predictions"]
        assert part["folded_from"] >= state["snapshot"]["folded"]
    assert sum(part["checked"]["predictions derived again"] for part in audited["partitions"]) > 0
    rebuilt = forks(pipeline, "rebuild")["partitions"]
    assert [each["same"] for each in rebuilt] == [None, None]
    assert [each["other_arithmetic"] for each in rebuilt] == [state["outcomes"] for state in before]


@pytest.mark.slow
def test_outcomes_that_are_learned_again_begin_another_part(bootstrap: str, tmp_path: Path) -> None:
    """Without its snapshots a model learns in one arithmetic what it had learned in two."""
    earlier = moved(StoredLog.read(LOGS[-1]), "whole-")
    earlier.rest.sort(key=lambda message: message.timestamp)
    del earlier.rest[-5:]  # of a clock that is wrong by days: what follows it would be late
    half = len(earlier.rest) // 2
    first = load(earlier, bootstrap, tmp_path)
    first.produce(earlier.messages()[:half])
    run_to_the_end(first)
    assert forks(first, "audit")["differences"] == 0

    logs, offsets = dump(first)
    grown = msgspec.structs.replace(earlier, logs=logs, offsets=offsets)
    at_damage = last_states(grown)
    for state, before in zip(at_damage, last_states(earlier), strict=True):
        assert state["snapshot"]["folded"] >= before["outcomes"]
    stored = moved(grown, "damaged-", damage=True)
    damaged = load(stored, bootstrap, tmp_path)
    damaged.produce(stored.messages()[half:])
    run_to_the_end(damaged)
    log = damaged.log_of("worker").read_text()
    assert log.count("learning all outcomes again instead") == stored.partitions

    audited = forks(damaged, "audit")
    assert audited["differences"] == 0
    for part, before in zip(audited["partitions"], at_damage, strict=True):
        assert part["folded_from"] >= before["outcomes"]
        checked = part["checked"]
        assert checked["predictions made with another arithmetic, not derived again"] == before["predictions"]
        newest = part["other_libraries"][-1]
        assert newest["outcomes_until"] == before["outcomes"]
        assert newest["libraries"].startswith("arithmetic mixed ")


def run_to_the_end(pipeline: Pipeline) -> None:
    """Let a worker process all inputs."""
    pipeline.environment = pipeline.environment | {"FORKS_JOIN__MAX_IDLE": "1s"}
    with pipeline.worker() as worker:
        until(partial(inputs_done, pipeline), "the end of the inputs", worker)
    until(pipeline.settled, "the end of all transactions")


def moved(stored: StoredLog, prefix: str, *, damage: bool = False) -> StoredLog:
    """Return a log for topics with another prefix, which records name too, perhaps with damaged snapshots."""

    def topic(name: str) -> str:
        return prefix + name.removeprefix(stored.prefix)

    def text(value: bytes | None) -> bytes | None:
        return value and value.replace(stored.prefix.encode(), prefix.encode())

    def records(log: StoredPartition) -> list[StoredRecord]:
        return [
            record(each, snapshot=log.topic.endswith("checkpoints") and not is_state_key(each.key))
            for each in log.records
        ]

    def record(each: StoredRecord, *, snapshot: bool) -> StoredRecord:
        if snapshot:
            return msgspec.structs.replace(each, value=b"damaged") if damage else each
        headers = [StoredHeader(header.name, text(header.value)) for header in each.headers]
        return msgspec.structs.replace(each, value=text(each.value), headers=headers)

    return msgspec.structs.replace(
        stored,
        prefix=prefix,
        logs=[
            msgspec.structs.replace(log, topic=topic(log.topic), records=records(log)) for log in stored.logs
        ],
        offsets=[msgspec.structs.replace(each, topic=topic(each.topic)) for each in stored.offsets],
        rest=[msgspec.structs.replace(each, topic=topic(each.topic)) for each in stored.rest],
    )


def test_records_are_loaded_at_their_offsets_whatever_lies_between(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    def record(offset: int) -> StoredRecord:
        return StoredRecord(
            offset, b"7", b"%d" % offset, 1_700_000_000_000 + offset, [StoredHeader("a", None)]
        )

    offsets = {"interactions": ([0, 1, 2], 3), "outcomes": ([0, 1, 3, 6, 7], 9), "predictions": ([2], 5)}
    logs = [
        StoredPartition(topic_prefix + topic, 0, [record(offset) for offset in listed], end)
        for topic, (listed, end) in offsets.items()
    ]
    stored = StoredLog("none", topic_prefix, 1, {}, logs, [], [], {})
    found, _ = dump(load(stored, bootstrap, tmp_path))
    assert {log.topic: log for log in found if log.end} == {log.topic: log for log in logs}
