"""Sources of Go modules, where Go is installed: schemas that no Python package has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="needs Go, which fetches the schemas")


@cache
def module_folder(module: str, checksum: str) -> Path:
    """The sources of a module, `path@version`, that have this checksum. Go downloads them once."""
    result = subprocess.run(
        ["go", "mod", "download", "-json", module],
        stdout=subprocess.PIPE,
        check=False,
        cwd="/",  # not in a module, whose own versions would count
        env=os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": ""},
    )
    found = json.loads(result.stdout)
    assert "Error" not in found, found["Error"]
    assert found["Sum"] == checksum
    return Path(found["Dir"])
