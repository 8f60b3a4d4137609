"""Wait until standard input is closed, then end all processes that work in a folder and delete it.

Usage: ``python -P cleaner.py FOLDER``. The kernel closes the pipe when the process ends that holds its other
end, also after SIGKILL: so no process and no folder is left over.
"""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil


def processes_in(folder: Path) -> list[psutil.Process]:
    """Return the processes whose working directory is in a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            directory = Path(process.cwd())
        except (psutil.Error, OSError):  # another user's, or it has just ended
            continue
        if directory.is_relative_to(folder):
            found.append(process)
    return found


if __name__ == "__main__":
    given = Path(sys.argv[1])
    sys.stdin.buffer.read()
    while left := processes_in(given):
        for each in left:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        time.sleep(0.05)  # not a wait for each: it is its parent that learns of its end
    shutil.rmtree(given, ignore_errors=True)
