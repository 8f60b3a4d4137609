"""Compiled code is cached where a folder can be written, and is used without one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forks.algorithm.kernels import linear

PROGRAM = """
import numpy as np
import pipeline.model.warm_up, pipeline.join.merge, pipeline.records.decimals
from forks.algorithm.kernels import linear
assert linear(np.ones(2), np.ones(2)) == 2.0
"""


@pytest.fixture
def unwritable(tmp_path: Path) -> dict[str, str]:
    """Variables with which Numba finds no folder: a file is where each would be, which stops root, too."""
    file = tmp_path / "file"
    file.touch()
    # Only the folder that the user names is looked for, as if that of the package were read-only.
    only = "UserProvidedCacheLocator"
    return {"NUMBA_CACHE_DIR": str(file / "cache"), "NUMBA_CACHE_LOCATOR_CLASSES": only, "HOME": str(file)}


def test_without_a_folder_to_write_everything_runs_with_one_warning(unwritable: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | unwritable,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RuntimeWarning: no folder for compiled code can be written") == 1


def test_with_a_folder_code_is_cached_there(tmp_path: Path) -> None:
    variables = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=variables, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert any(path.name.startswith("kernels.linear-") for path in tmp_path.rglob("*.nbi"))


def test_compiled_functions_know_their_cache() -> None:
    assert type(linear._cache).__name__ == "FunctionCache"
