"""Seconds until `forks` answers: its help, completion, and the imports of a worker.

Each is a process of its own. Beside them stands ``python -c pass``, the floor on the same machine at the same
time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from bench.options import Options

RUNS: Final = 7

MAIN: Final = "import sys; sys.argv[0] = 'forks'; from pipeline.cli import main; main()"
COMPLETION: Final = MappingProxyType(
    {"_FORKS_COMPLETE": "complete_bash", "COMP_WORDS": "forks r", "COMP_CWORD": "1"}
)
PROCESSES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "python -c pass": ("-c", "pass"),
        "forks --help": ("-c", MAIN, "--help"),
        "forks run --help": ("-c", MAIN, "run", "--help"),
        "completion": ("-c", MAIN),
        "import pipeline.cli": ("-c", "import pipeline.cli"),
        "import pipeline.worker.worker": ("-c", "import pipeline.worker.worker"),
    }
)
"""What is timed, and the arguments of Python."""


def run(options: Options) -> dict[str, Any]:
    """Start each process several times in turn, and return the median and the least of its seconds.

    Parameters
    ----------
    options
        How to run.

    Returns
    -------
    dict
        By process: seconds, and how many times those of ``python -c pass``.
    """
    seconds: dict[str, list[float]] = {name: [] for name in PROCESSES}
    for number in range((options.runs or RUNS) + 1):
        for name, arguments in PROCESSES.items():
            taken = _time(arguments, COMPLETION if name == "completion" else {})
            if number:  # the first run reads files that the later ones find in memory
                seconds[name].append(taken)
        options.say(f"run {number} of {options.runs or RUNS}")
    floor = statistics.median(seconds["python -c pass"])
    return {
        name: {
            "median_s": round(statistics.median(values), 3),
            "least_s": round(min(values), 3),
            "times_python": round(statistics.median(values) / floor, 1),
        }
        for name, values in seconds.items()
    }


def _time(arguments: tuple[str, ...], environment: Mapping[str, str]) -> float:
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        check=True,
        env=os.environ | environment,
    )
    return time.perf_counter() - begin
