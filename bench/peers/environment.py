"""A virtual environment for packages that are not ours, at locked versions, kept until the lock changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from pipeline.errors import ConfigError

LOCK: Final = Path(__file__).with_name("requirements.lock")
FOLDER: Final = Path(sys.prefix) / "peers"


def environment(folder: Path = FOLDER, lock: Path = LOCK) -> Path:
    """Return its Python; what the lock names is installed unless it was before.

    Raises
    ------
    ConfigError
        The packages cannot be installed.
    """
    python, installed = folder / "bin" / "python", folder / "installed.lock"
    if installed.exists() and installed.read_bytes() == lock.read_bytes():
        return python
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "--requirement", lock], check=True, stdout=sys.stderr)
    except subprocess.CalledProcessError as error:
        raise ConfigError(f"the packages of {lock} cannot be installed into {folder}: {error}") from error
    installed.write_bytes(lock.read_bytes())
    return python
