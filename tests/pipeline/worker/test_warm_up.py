"""The warm-up compiles all that a worker calls, in two processes where that helps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forks.jit import njit
from pipeline.tools import demo
from pipeline.worker import warm_up

PROGRAM = """
import gc
from numba.core.dispatcher import Dispatcher
from pipeline.model.factory import ModelFactory
from pipeline.worker.warm_up import warm_up
from tests.golden import core, scenarios

def compiled():
    functions = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
    return {f"{each.__module__}.{each.__name__}{args}" for each in functions for args in each.overloads}

scenario = scenarios.invented(shared=False)
warm_up(ModelFactory(scenario.config))
before = compiled()
core.replay(scenario, batch=150, snapshot_every=5)
print(len(before), *sorted(compiled() - before), sep="\\n")
"""


@pytest.mark.slow
def test_nothing_is_compiled_or_loaded_after_the_warm_up() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, *after = done.stdout.splitlines()
    assert int(before) > 50
    assert after == []


def double() -> Any:
    """Return a function that is not compiled yet."""
    return njit(cache=False)(lambda number: 2 * number)


def test_a_second_process_starts_with_the_first_compilation_and_ends_with_the_block() -> None:
    function = double()
    with warm_up._second_process() as second:
        assert function(1) == 2
        process = second._process
        assert process is not None
        assert process.poll() is None
        assert function(np.int32(1)) == 2
        assert second._process is process
    assert process.poll() is not None


def test_without_compilation_there_is_no_second_process() -> None:
    function = double()
    function(1)
    with warm_up._second_process() as second:
        function(1)
        second.wait()
        assert second._process is None


def test_without_a_folder_there_is_no_second_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "cache_folder", lambda _: None)
    with warm_up._second_process() as second:
        assert double()(1) == 2
        assert second._process is None


def test_the_compiler_of_the_demo_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))  # so that it is busy for long
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def remember(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(start(*args, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", remember)
    with demo.compiling(tmp_path / "log", lambda _: None):
        [process] = started
        assert os.getpgid(process.pid) == process.pid
        assert process.poll() is None
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert (tmp_path / "log").read_text() == ""
