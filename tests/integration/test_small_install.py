"""What works without any extra: the worker and what one needs beside it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pipeline.errors import ConfigError
from tests.integration.harness import TIMEOUT, Pipeline, invented_events
from tests.support.small_install import forks_without_extras


def forks(pipeline: Pipeline, *arguments: str) -> subprocess.CompletedProcess[str]:
    kafka = pipeline.kafka
    command = forks_without_extras(*arguments, "--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix)
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=TIMEOUT, cwd=pipeline.folder
    )


def test_a_worker_needs_no_extra(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    assert forks(pipeline, "topics", "create").returncode == 0
    events = invented_events(tmp_path, 500)
    pipeline.produce_events(events)
    pipeline.program = forks_without_extras()
    pipeline.run_until({pipeline.topics.outcomes: len(events)})

    report = forks(pipeline, "report")
    assert report.returncode == 0, report.stderr
    assert f"{len(events)}" in report.stdout
    assert 'pip install "forks-stream[report]"' in report.stderr
    picture = forks(pipeline, "report", "--out", "run.svg")
    assert picture.returncode == ConfigError.exit_code
    assert 'pip install "forks-stream[report]"' in picture.stderr

    audit = forks(pipeline, "audit", "--group", pipeline.kafka.group)
    assert audit.returncode == 0, audit.stderr
