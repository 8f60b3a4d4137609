"""Options of every benchmark, and its output."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """How to run a benchmark.

    Parameters
    ----------
    runs : repetitions or permutations; None for the benchmark's own number
    data : folder with ``kuairec/``, ``kuairand/`` and ``files/``
    quiet : nothing but the result
    events : how many, where they go through Kafka; None for the benchmark's own number
    warm_up : how many before these warm up Java; None for the benchmark's own number
    """

    runs: int | None
    data: Path
    quiet: bool
    events: int | None = None
    warm_up: int | None = None

    def say(self, line: str) -> None:
        """Tell a person how far it is."""
        if not self.quiet:
            print(line, file=sys.stderr, flush=True)

    def folder(self, name: str) -> Path:
        """Return a folder of the data, or end with a message if it is not there."""
        folder = self.data / name
        if not folder.is_dir():
            raise SystemExit(
                f"{folder}: no such folder; --data or FORKS_TEST_DATA names the folder that holds {name}/"
            )
        return folder
