"""`forks` under a wall clock that is wrong: `python stepped.py FILE ...`, with the seconds in the file."""

from __future__ import annotations

import sys
import time
from pathlib import Path


def set_wrong(file: Path) -> None:
    """From now on, and by what the file says each time that the clock is read."""
    right = time.time
    time.time = lambda: right() + float(file.read_text())


if __name__ == "__main__":
    set_wrong(Path(sys.argv.pop(1)))
    from pipeline.cli import main  # only now: what it imports may look at the clock

    main()
