"""With --json, each line on standard error is one JSON object, whoever writes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import FORKS

PROGRAM = """
import logging, sys, threading, warnings
from pipeline.cli.failures import report_failures
from pipeline.cli.logs import configure
configure()
configure(json=True, worker=2)

class Unraisable:
    def __del__(self):
        raise ValueError("a destructor\\nof two lines")

def fail(text):
    raise ValueError(text)

with report_failures(" in worker 2"):
    import structlog
    structlog.get_logger().info("a line", count=1)
    logging.getLogger("somebody").error("%s of %s", "a line", "logging")
    try:
        fail("logged")
    except ValueError:
        logging.getLogger("somebody").exception("with a traceback")
    warnings.warn("a warning", RuntimeWarning)
    thread = threading.Thread(target=fail, args=("in a thread",), name="http")
    thread.start()
    thread.join()
    Unraisable()
    fail("at last")
"""


def lines(stderr: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stderr.splitlines()]


def test_whatever_is_written_is_json() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    logged = lines(done.stderr)
    assert [(line["level"], line["event"]) for line in logged] == [
        ("info", "a line"),
        ("error", "a line of logging"),
        ("error", "with a traceback"),
        ("warning", "a warning"),
        ("error", "uncaught exception"),
        ("error", "exception ignored"),
        ("error", "uncaught exception"),
    ]
    assert all(line["worker"] == 2 and line["timestamp"] for line in logged)
    texts = [line.get("exception", "").splitlines()[-1:] for line in logged]
    assert texts[2] == ["ValueError: logged"]
    assert texts[4] == ["ValueError: in a thread"]
    assert texts[5] == ["of two lines"]
    assert texts[6] == ["ValueError: at last"]
    assert logged[4]["thread"] == "http"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--bogus"], "No such option: --bogus"),
        (["--workers", "0"], "'--workers'"),
        (["--workers"], "requires an argument"),
        (["too", "many"], "unexpected extra"),
        (["--bootstrap", "127.0.0.1:1", "--prefix", "/"], "kafka.prefix"),
    ],
)
def test_a_wrong_option_is_a_line_of_json(options: list[str], text: str, tmp_path: Path) -> None:
    command = [*FORKS, "run", "--json", *options]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=os.environ | {"TERM": "dumb"}
    )
    [line] = lines(done.stderr)
    assert done.returncode == line["exit_code"] == 2
    assert text in line["event"]


def test_without_json_a_wrong_option_shows_the_usage(tmp_path: Path) -> None:
    command = [*FORKS, "run", "--bogus"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "Usage:" in done.stderr
