"""`forks inspect` over what a worker, and others, have written."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import ConfigError, TopicError
from pipeline.tools.inspect.reading import read
from pipeline.tools.inspect.start import parse_start
from tests.integration.harness import FORKS, TIMEOUT, Message, Pipeline, invented_events, until


def options(pipeline: Pipeline) -> list[str]:
    return ["--bootstrap", pipeline.kafka.bootstrap, "--prefix", pipeline.kafka.prefix]


def forks_inspect(pipeline: Pipeline, *arguments: str) -> str:
    answer = CliRunner().invoke(app, ["inspect", *arguments, *options(pipeline)])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def objects(lines: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines()]


def offsets(
    pipeline: Pipeline, start: str, partition: int | None = None
) -> list[tuple[int | None, int | None]]:
    messages = read(pipeline.kafka, pipeline.topics, pipeline.topics.outcomes, parse_start(start), partition)
    return [(message.partition(), message.offset()) for message in messages]


def write(pipeline: Pipeline, partition: int, timestamps: list[int]) -> None:
    """Write an outcome for each timestamp, each in a transaction of its own, so that offsets have gaps."""
    producer = Producer(
        {
            "bootstrap.servers": pipeline.kafka.bootstrap,
            "transactional.id": f"{pipeline.kafka.prefix}{partition}",
        }
    )
    producer.init_transactions(TIMEOUT)
    for timestamp in timestamps:
        producer.begin_transaction()
        producer.produce(pipeline.topics.outcomes, b"{}", partition=partition, timestamp=timestamp)
        producer.commit_transaction(TIMEOUT)
    until(pipeline.settled, "the end of the last transaction")


def test_what_a_worker_wrote_can_be_looked_at(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 300)
    pipeline.produce_events(events)
    pipeline.produce([Message(pipeline.topics.interactions, b"7", b"\xff[red]\x1b[2J")])
    pipeline.run_until({pipeline.topics.outcomes: len(events), pipeline.topics.dead_letters: 1})

    first = events.row(0, named=True)
    [prediction] = objects(
        forks_inspect(pipeline, "predictions", "--from", "beginning", "--limit", "1", "--json")
    )
    assert prediction["value"]["event_id"] == first["event_id"]
    assert (prediction["timestamp"], prediction["key"]) == (first["timestamp"], str(first["user_id"]))
    assert len(objects(forks_inspect(pipeline, "outcomes", "--json"))) == 20
    assert len(objects(forks_inspect(pipeline, "outcomes", "--json", "--from", "-1000"))) == len(events)
    detail = forks_inspect(pipeline, "outcomes", "--limit", "1", "--detail")
    assert "user_label_mean" in detail
    assert "watch_ratio" in detail
    dead_letter = forks_inspect(pipeline, "dead-letters")
    origin = f"source.topic {pipeline.topics.interactions}  source.partition 0  source.offset {len(events)}"
    assert "fault undecodable  " in dead_letter
    assert f"{origin}  key 7  value /1tyZWRdG1sySg==" in dead_letter
    checkpoints = forks_inspect(pipeline, "checkpoints", "--limit", "2")
    assert f"predictions {len(events)}  outcomes {len(events)}" in checkpoints
    assert "snapshot.slot 0  snapshot.number 0  bytes " in checkpoints


def test_the_last_records_are_found_behind_transaction_markers(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    write(pipeline, 0, [1_000, 4_000, 3_000])
    write(pipeline, 1, [2_000, 5_000])
    assert offsets(pipeline, "-3") == [(0, 2), (0, 4), (1, 2)]
    assert offsets(pipeline, "-9") == [(0, 0), (1, 0), (0, 2), (0, 4), (1, 2)]
    assert offsets(pipeline, "-0") == []
    assert offsets(pipeline, "-1", partition=0) == [(0, 4)]


def test_records_are_found_from_an_offset_and_from_a_time_on(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    write(pipeline, 0, [1_000, 4_000, 3_000, 2_000])
    write(pipeline, 1, [1_000])
    assert offsets(pipeline, "3", partition=0) == [(0, 4), (0, 6)]
    assert offsets(pipeline, "beginning") == [(0, 0), (0, 2), (0, 4), (0, 6), (1, 0)]
    assert offsets(pipeline, "1000") == []
    assert offsets(pipeline, "1970-01-01T00:00:03Z") == [(0, 2), (0, 4)]
    assert offsets(pipeline, "2999-01-01") == []


def test_uncommitted_records_are_not_shown(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    write(pipeline, 0, [1_000])
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic_prefix}open"})
    producer.init_transactions(TIMEOUT)
    for end in (producer.abort_transaction, None):
        producer.begin_transaction()
        producer.produce(pipeline.topics.outcomes, b"{}", partition=0)
        assert producer.flush(TIMEOUT) == 0
        if end is not None:
            end(TIMEOUT)
        assert offsets(pipeline, "beginning") == offsets(pipeline, "-5") == [(0, 0)]
    producer.abort_transaction(TIMEOUT)


def test_following_goes_on_until_ctrl_c_and_then_leaves_quietly(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    pipeline.produce([Message(pipeline.topics.predictions, b"7", b'{"there": 1}', 1)])
    process = subprocess.Popen(
        [*FORKS, "inspect", "predictions", "--follow", "--json", *options(pipeline)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["value"] == {"there": 1}
        for number in range(3):
            pipeline.produce([Message(pipeline.topics.predictions, str(number).encode(), b'{"new": 1}', 1)])
            assert json.loads(process.stdout.readline())["key"] == str(number)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=TIMEOUT)
        assert (process.returncode, rest, errors) == (130, "", "")
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("more", [["--json"], []])
def test_a_closed_pipe_is_no_error(
    bootstrap: str, topic_prefix: str, tmp_path: Path, more: list[str]
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    pipeline.produce(Message(pipeline.topics.predictions, b"7", b"x" * 500, 1) for _ in range(2_000))
    process = subprocess.Popen(
        [*FORKS, "inspect", "predictions", "--from", "beginning", *more, *options(pipeline)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(TIMEOUT)
    finally:
        process.kill()
        process.communicate()


def test_what_is_not_there_is_named(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    with pytest.raises(ConfigError, match="outcomes has partitions 0 to 1"):
        offsets(pipeline, "-1", partition=2)
    with pytest.raises(TopicError, match="no topic missing at"):
        list(read(pipeline.kafka, pipeline.topics, "missing", parse_start("-1")))
