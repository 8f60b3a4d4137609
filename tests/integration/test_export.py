"""An export that is killed and continued, read back with another Parquet reader."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.features.feature_set import EFFECTS
from pipeline.tools.times import date
from tests.integration.harness import TIMEOUT, Pipeline, invented_events, until

EVENTS = 600
PROGRAM = """
from pipeline.tools.export import exporting
exporting.RECORDS = 1
from pipeline.log import reader
reader.MAX_POLL_RECORDS = 10
from pipeline.cli import main
main()
"""


def arguments(pipeline: Pipeline, what: str, folder: Path) -> list[str]:
    kafka = pipeline.kafka
    where = ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix]
    return ["export", what, "--to", str(folder), *where, *pipeline.options, "--json"]


def export(pipeline: Pipeline, what: str, folder: Path) -> dict[str, Any]:
    result = CliRunner().invoke(app, arguments(pipeline, what, folder))
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def kill_in_the_middle(pipeline: Pipeline, what: str, folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments(pipeline, what, folder)],
        env=os.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: len(list(folder.rglob("*.parquet"))) >= 5, "some files", process)
        process.send_signal(signal.SIGKILL)
        assert process.wait(TIMEOUT) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()


def rows(folder: Path) -> list[dict[str, Any]]:
    query = f"select * from read_parquet('{folder}/**/*.parquet') order by partition, \"offset\""
    found = duckdb.execute(query)
    columns = [name for name, *_ in found.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]


def bits(value: Any) -> Any:
    """A value in which two floats are equal only if all their bits are."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return {name: bits(each) for name, each in value.items()}
    return [bits(each) for each in value] if isinstance(value, list) else value


def expected(record: dict[str, Any], partition: int) -> dict[str, Any]:
    scores = record.get("challengers")
    found: dict[str, Any] = bits(
        {name: value for name, value in record.items() if name != "shared"}
        | {
            "event_id": str(record["event_id"]),
            "user_id": str(record["user_id"]),
            "video_id": str(record["video_id"]),
            "features": dict(zip(EFFECTS, map(float, record["features"]), strict=True)),
            "challengers": scores and [{"name": name, "score": score} for name, score in scores.items()],
            "asked": record.get("asked"),
            "partition": partition,
            "day": date(record["timestamp"]),
        }
    )
    return found


@pytest.mark.parametrize("what", ["predictions", "outcomes"])
def test_another_reader_finds_each_record_once_with_the_same_bits(
    bootstrap: str, topic_prefix: str, tmp_path: Path, what: str
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, 2)
    config = tmp_path / "mine.toml"
    config.write_text('[challengers.linear]\nlearner = "arow"\n[worker]\nbatch = 50\n')
    pipeline.options = ("--config", str(config))
    events = invented_events(tmp_path, EVENTS)
    head, topic = events.head(len(events) - 100), getattr(pipeline.topics, what)
    pipeline.produce_events(head)
    pipeline.run_until({pipeline.topics.outcomes: len(head)})
    folder = tmp_path / "exported"

    kill_in_the_middle(pipeline, what, folder)
    partial = len(rows(folder))
    continued = export(pipeline, what, folder)
    assert 0 < continued["records"] < len(head)
    assert partial <= continued["total"] == len(head)
    assert export(pipeline, what, folder)["records"] == 0
    pipeline.produce_events(events.tail(100))
    pipeline.run_until({pipeline.topics.outcomes: len(events)})
    last = export(pipeline, what, folder)
    assert (last["records"], last["total"], last["complete"]) == (100, len(events), True)

    written = [(json.loads(each.value or b""), each.partition) for each in pipeline.read(topic)]
    found = [{name: value for name, value in row.items() if name != "offset"} for row in rows(folder)]
    for row in found:
        row["day"] = str(row["day"])
        if "former" in row:
            assert row.pop("former") is None
    assert [bits(row) for row in found] == [expected(*each) for each in written]
    assert {row["day"] for row in found} == {path.name.removeprefix("day=") for path in folder.glob("day=*")}
    result = CliRunner().invoke(
        app, arguments(pipeline, "outcomes" if what == "predictions" else "predictions", folder)
    )
    assert result.exit_code != 0
    assert "has an export of" in str(result.exception)
