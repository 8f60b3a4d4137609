"""Workers whose predictions mostly wait in a file: killed on the way, they write what they would anyway."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from tests.integration.harness import (
    Pipeline,
    assert_as_in_one_go,
    invented_events,
    until,
)

pytestmark = pytest.mark.slow
IN_MEMORY = 50
LATER = 4 * 3_600_000
"""Milliseconds that labels come later than invented: some two hundred predictions wait."""


def test_a_killed_worker_loses_its_file_and_nothing_else(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline, folder = Pipeline(bootstrap, topic_prefix, tmp_path), tmp_path / "spilled"
    folder.mkdir()
    pipeline.environment = {
        "FORKS_JOIN__MAX_IN_MEMORY": str(IN_MEMORY),
        "FORKS_JOIN__SPILL_FOLDER": str(folder),
        "FORKS_WORKER__BATCH": "200",
        "FORKS_CHECKPOINT__OUTCOMES": "700",
    }
    later = pl.col("label_timestamp") + LATER
    events = invented_events(tmp_path, 4_000).with_columns(label_timestamp=later)
    topics = pipeline.topics
    pipeline.produce_events(events)
    with pipeline.follow(topics.outcomes) as follower:
        for share in (4, 2):
            dies = pipeline.start_worker()
            try:
                until(partial(follower.reached, len(events) // share), "outcomes", dies)
                inside = Path(f"/proc/{dies.pid}/fd")
                if inside.exists():
                    assert any(str(folder) in str(each.readlink()) for each in inside.iterdir())
            finally:
                dies.kill()
                dies.wait()
            assert not list(folder.iterdir()), "a file without a name is gone with its process"
        with pipeline.worker() as worker:
            until(partial(follower.reached, len(events)), "all outcomes", worker)
    assert_as_in_one_go(pipeline, events)
    where = ["--bootstrap", bootstrap, "--prefix", topic_prefix, "--group", pipeline.kafka.group]
    audited = CliRunner().invoke(app, ["audit", "--json", *where], env=pipeline.environment)
    assert audited.exit_code == 0, audited.output
    assert json.loads(audited.stdout)["differences"] == 0


def test_a_folder_that_cannot_be_written_ends_a_worker_at_its_start(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline, missing = Pipeline(bootstrap, topic_prefix, tmp_path), tmp_path / "missing"
    pipeline.environment = {"FORKS_JOIN__SPILL_FOLDER": str(missing)}
    worker = pipeline.start_worker()
    assert worker.wait(60) == 10
    log = pipeline.log_of("worker").read_text()
    assert f"{missing} cannot be written: No such file or directory" in log
    assert "join.spill_folder" in log
    assert "Traceback" not in log
