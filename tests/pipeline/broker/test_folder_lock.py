"""A folder is held by one process at a time."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.broker.folder_lock import locked

HOLD = """
import sys
from pathlib import Path
from pipeline.broker.folder_lock import locked
with locked(Path(sys.argv[1]), "data", "advice"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_says_that_it_waits_and_goes_on_when_the_first_was_killed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"

    def hold() -> None:
        with locked(folder, "data", "advice"):
            pass

    with (
        subprocess.Popen(
            [sys.executable, "-c", HOLD, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process,
        ThreadPoolExecutor(1) as pool,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        waiting = pool.submit(hold)
        message = ""
        while not message.endswith("...\n"):
            assert not waiting.done()
            time.sleep(0.01)
            message += capfd.readouterr().err
        process.kill()
        waiting.result()
    assert message == f"Waiting for another process that works in {folder} ...\n"
