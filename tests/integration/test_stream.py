"""A stream that is not KuaiRec's, by configuration alone: own topics, fields, units and labels."""

from __future__ import annotations

import json
import math
import random
import re
import signal
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.loader import load
from pipeline.config.topics import topics_of
from pipeline.records.encoding import encode
from pipeline.records.names import EXCEPTION_HEADER, MESSAGE_HEADER
from tests.integration.harness import TIMEOUT, Message, Pipeline, Written, until

EVENTS = 3_000
BEGIN = 1_772_366_400_000
CLEAR_CASE = 1.875 / math.hypot(1.0, 1.875)
"""Signal of a label at a distance of `target.scale` from `target.above`."""
DEFINITION = """
[stream]
name = "deliveries"

[stream.entities]
courier = "/courier/id"
restaurant = "/from"

[stream.interactions]
topic = "orders"
event_id = "/order"
time = "/times/at"
time_unit = "iso8601"

[stream.labels]
topic = "arrivals"
event_id = "/order"
time = "/times/arrived"
time_unit = "s"
value = "/on_time"
value_kind = "boolean"

[stream.target]
name = "on_time"
above = 0.5
cap = 1.0
scale = 0.5

[worker]
batch = 200

[checkpoint]
outcomes = 500

[join]
max_jump = "365d"
"""


def messages(interactions: str, labels: str) -> list[Message]:
    """Orders of 40 couriers from 25 restaurants, some of which are slow, and their arrivals."""
    chance, found = random.Random(5), list[Message]()
    for number in range(EVENTS):
        courier, restaurant = f"c{chance.randrange(40)}", chance.randrange(25)
        at, slow = BEGIN + 60_000 * number, (int(courier[1:]) + restaurant) / 64
        order: dict[str, Any] = {"order": f"o{number}", "courier": {"id": courier}, "from": restaurant}
        time = datetime.fromtimestamp(at / 1000, UTC).isoformat()
        key = courier.encode()
        found.append(Message(interactions, key, encode(order | {"times": {"at": time}}), at))
        arrived = at + 1_200_000
        arrival = order | {"times": {"arrived": arrived / 1000}, "on_time": chance.random() > slow}
        found.append(Message(labels, key, encode(arrival), arrived))
    return found


KUAIRAND = """
stream = "{path}"

[worker]
batch = 2000

[checkpoint]
outcomes = 5000

[join]
max_idle = "3s"
"""
MOST_MISTAKES = 0.265
LEAST_AUC = 0.802


def pipeline_of(bootstrap: str, prefix: str, folder: Path, definition: str) -> Pipeline:
    """Return a pipeline with this configuration, with two partitions for deliveries."""
    folder.mkdir()
    file = folder / "stream.toml"
    file.write_text(definition)
    topics = topics_of(load(file, {"kafka.prefix": prefix}))
    pipeline = Pipeline(bootstrap, prefix, folder, 1 + ("deliveries" in definition), topics=topics)
    pipeline.options = ("--config", str(file))
    return pipeline


def command(pipeline: Pipeline, *arguments: str, exit_code: int = 0) -> str:
    kafka = pipeline.kafka
    where = ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix]
    result = CliRunner().invoke(app, [*arguments, *pipeline.options, *where])
    assert result.exit_code == exit_code, result.output
    return result.stdout


def kill_after(pipeline: Pipeline, outcomes: Sequence[int]) -> None:
    """Kill a worker when it has committed so many outcomes, once for each number."""
    for count in outcomes:
        with pipeline.follow(pipeline.topics.outcomes) as follower:
            worker = pipeline.start_worker()
            try:
                until(partial(follower.reached, count), f"{count} outcomes", worker)
                worker.send_signal(signal.SIGKILL)
                assert worker.wait(TIMEOUT) == -signal.SIGKILL
            finally:
                worker.kill()
                worker.wait()


@pytest.mark.slow
def test_real_rows_of_another_kind_are_learned_over_kills(
    kuairand: Path, bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    log, drafted = str(kuairand / "log.csv"), tmp_path / "kuairand.toml"
    written = CliRunner().invoke(app, ["stream", "init", log, "--name", "kuairand", "--out", str(drafted)])
    assert written.exit_code == 0
    drafted.write_text(drafted.read_text().replace('value = "/label"', 'value = "/long_view"'))
    definition = KUAIRAND.format(path=drafted)
    pipeline = pipeline_of(bootstrap, topic_prefix, tmp_path / "long_view", definition)
    replayed = command(pipeline, "replay", log, "--label-delay", "20s", "--json")
    events = json.loads(replayed)["events"]
    assert events == 41_828
    kill_after(pipeline, (8_000, 20_000))
    pipeline.run_until({pipeline.topics.outcomes: events})
    assert "no difference" in command(pipeline, "audit", "--group", pipeline.kafka.group)
    report = json.loads(command(pipeline, "report", "--json"))
    assert report["labelled"] == events
    assert report["mistakes"] < MOST_MISTAKES
    assert report["auc"] > LEAST_AUC
    assert report["mistakes"] < report["running_means"]
    assert pipeline.read(pipeline.topics.dead_letters) == []


@pytest.mark.slow
def test_two_groups_learn_one_stream_of_their_own_words_over_kills(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    inputs = f"{topic_prefix}food."
    definition = f'[kafka]\ninput_prefix = "{inputs}"\n{DEFINITION}'
    first, second = (
        pipeline_of(bootstrap, f"{topic_prefix}{name}-", tmp_path / name, definition) for name in ("a", "b")
    )
    assert first.topics.inputs == second.topics.inputs == (f"{inputs}orders", f"{inputs}arrivals")
    first.produce(messages(*first.topics.inputs))
    bad = encode({"order": "x", "courier": {"id": 1.5}, "from": 3, "times": {"at": "2026-03-01T12:00:00Z"}})
    assert "deliveries: everything fits" in command(first, "stream", "check", "--messages", "10000")
    first.produce([Message(first.topics.interactions, b"1", bad)])
    checked = json.loads(command(first, "stream", "check", "--messages", "10000", "--json", exit_code=1))
    assert (checked["interactions"]["usable"], checked["interactions"]["messages"]) == (EVENTS, EVENTS + 1)
    assert checked["joined"] == EVENTS
    [reason] = checked["interactions"]["reasons"]
    assert "at `$.courier.id`" in reason["reason"]
    kill_after(first, (300, 900))
    for pipeline in (first, second):
        pipeline.run_until({pipeline.topics.outcomes: EVENTS})
        outcomes = pipeline.read_json(pipeline.topics.outcomes)
        assert {outcome["event_id"] for outcome in outcomes} == {f"o{number}" for number in range(EVENTS)}
        assert len(outcomes) == EVENTS
        assert list(outcomes[0])[:4] == ["event_id", "courier", "restaurant", "timestamp"]
        assert list(pipeline.read_json(pipeline.topics.predictions)[0])[:4] == list(outcomes[0])[:4]
        assert all(outcome["label"] is (outcome["on_time"] == 1.0) for outcome in outcomes)
        late = [outcome for outcome in outcomes if outcome["sequence"] >= EVENTS // 4]
        assert sum(not outcome["correct"] for outcome in late) / len(late) < 0.4
        [dead] = pipeline.read(pipeline.topics.dead_letters)
        headers = dict(dead.headers)
        assert headers[EXCEPTION_HEADER] == b"invalid"
        assert b"at `$.courier.id`" in headers[MESSAGE_HEADER]
        assert "no difference" in command(pipeline, "audit", "--group", pipeline.kafka.group)
        assert "identical" in command(pipeline, "rebuild", "--group", pipeline.kafka.group)
        shown = command(pipeline, "inspect", "outcomes", "--limit", "1", "--detail")
        assert re.search(r"^ *restaurant +\d+$", shown, re.MULTILINE)
        assert re.search(r"^ *on_time +[01]\.0$", shown, re.MULTILINE)
        assert re.search(r"^ *restaurant_label_mean +0\.", shown, re.MULTILINE)
        report = json.loads(command(pipeline, "report", "--json"))
        assert report["labelled"] == EVENTS
        shown = command(pipeline, "report")
        assert "running means of courier and restaurant" in shown
        assert re.search(r'always "(positive|negative)"', shown)
        shares = pipeline.read_json(pipeline.topics.shared)
        assert len(shares) > 10
        for counts, sums in (
            pair for each in shares for pair in zip(each["restaurants"], each["effects"], strict=True)
        ):
            _, events, positive, _ = counts
            assert sums[2] == pytest.approx(CLEAR_CASE * (2 * positive - events), abs=1e-3)
    settings = [json.loads(state.value or b"")["settings"] for state in _states(first)]
    assert all(each["stream.target.above"] == "0.5" for each in settings)
    assert all(each["stream.names"] == "courier, restaurant, on_time" for each in settings)
    _join_after_a_restart(second)


def _join_after_a_restart(pipeline: Pipeline) -> None:
    """Let a label wait for its interaction in the state record, and join it after a restart."""
    at = BEGIN + 60_000 * EVENTS + 1_200_000
    ids = {"order": "last", "courier": {"id": "c1"}, "from": 3}
    arrival = encode(ids | {"times": {"arrived": at / 1000}, "on_time": True})
    pipeline.produce([Message(pipeline.topics.labels, b"c1", arrival, at)])
    with pipeline.worker() as worker:
        until(lambda: any(_waiting(state) for state in _states(pipeline)), "a label that waits", worker)
    order = encode(ids | {"times": {"at": datetime.fromtimestamp(at / 1000, UTC).isoformat()}})
    pipeline.produce([Message(pipeline.topics.interactions, b"c1", order, at)])
    pipeline.run_until({pipeline.topics.outcomes: EVENTS + 1})
    last = pipeline.read_json(pipeline.topics.outcomes)
    assert [each["on_time"] for each in last if each["event_id"] == "last"] == [1.0]


def _waiting(state: Written) -> list[Any]:
    waiting: list[Any] = json.loads(state.value or b"")["waiting"]
    return waiting


def _states(pipeline: Pipeline) -> list[Written]:
    written = pipeline.read(pipeline.topics.checkpoints)
    return [each for each in written if (each.key or b"").endswith(b"/state")]
