from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.golden.__main__ import FILE
from tests.machines.__main__ import BEGIN, END, MACHINES, PAGE, differences, summary, with_rows
from tests.machines.place import FailedError, run


def result(machine: str, digests: str) -> dict[str, Any]:
    return {"machine": machine, "libraries": {"python": "3.13.5"}, "digests": digests, "tests": ""}


def test_rows_of_other_machines_stay_in_the_table() -> None:
    first, second = MACHINES[0].text, MACHINES[1].text
    page = with_rows(f"before\n{BEGIN}{END}\nafter\n", [result(second, "hold"), result(first, "hold")])
    page = with_rows(page, [result(second, "differ")])
    rows = [row.split(" | ") for row in page.split(BEGIN)[1].split(END)[0].splitlines()[2:]]
    assert [(row[0], row[1], row[-2]) for row in rows] == [
        (f"| {first}", "3.13.5", "hold"),
        (f"| {second}", "3.13.5", "differ"),
    ]
    assert (page.split(BEGIN)[0], page.split(END)[1]) == ("before\n", "\nafter\n")


def test_each_row_of_the_page_is_of_a_machine_that_there_is() -> None:
    page = PAGE.read_text()
    rows = page.split(BEGIN)[1].split(END)[0].splitlines()[2:]
    assert len(rows) > 5
    assert with_rows(page, []) == page


def test_streams_that_differ_are_named() -> None:
    core = {name: dict(streams) for name, streams in json.loads(FILE.read_text())["core"].items()}
    assert differences(core) == ""
    core["slates"]["outcomes"] = "1 other"
    del core["invented"]["predictions"]
    assert differences(core) == f"differ in 2 of {len(core)} replays: outcomes, predictions"


def test_the_last_summary_of_pytest_counts() -> None:
    assert summary("==== 3 passed, 1 skipped in 63.72s (0:01:03) ====\n") == ("3 passed, 1 skipped", True)
    assert summary("FAILED a.py::b - C\n=== 1 failed, 3 passed in 1.0s ===\n") == (
        "1 failed, 3 passed",
        False,
    )
    with pytest.raises(FailedError, match="end"):
        summary("Killed\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make namespaces")
def test_nothing_that_a_command_started_is_left(tmp_path: Path) -> None:
    sleep = f"sleep 600.{os.getpid()}"
    script = f"mount -t tmpfs none {tmp_path}; touch {tmp_path}/there; {sleep} & kill -0 $! && exit 3"
    with pytest.raises(FailedError, match="exit code 3"):
        run(("sh", "-c", script), tmp_path.with_suffix(".log"), print, lasts=600)
    assert sleep not in [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]
    assert not (tmp_path / "there").exists()
