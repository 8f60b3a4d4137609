"""Change records at random, and see what comes of them: `python -m tests.fuzz state --count 100000 --seed 1`.

Prints the number of cases by outcome and the largest size of the process. The exit code is 1 if a case ended
with an error that is not one for users. `--only NUMBER` repeats a single case.
"""

from __future__ import annotations

import argparse
import logging
import math
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from random import Random

import structlog

from tests.fuzz import columns, files, messages, snapshots, state

TARGETS: dict[str, Callable[[Random], str]] = {
    "columns": columns.fuzz,
    "files": files.fuzz,
    "messages": messages.fuzz,
    "state": state.fuzz,
    "snapshots": snapshots.fuzz,
}
"""Functions that run one case, which the generator determines, and return its outcome. Any exception is a
failure."""
SHOWN_FAILURES = 5


def run(
    target: Callable[[Random], str], numbers: range, seed: int, end: float = math.inf
) -> tuple[Counter[str], list[int]]:
    """Run cases until a time of `time.monotonic`; return their number by outcome, and those that failed."""
    outcomes: Counter[str] = Counter()
    failed: list[int] = []
    for number in numbers:
        if time.monotonic() > end:
            break
        try:
            outcome = target(Random(f"{seed}/{number}"))
        except Exception as error:
            outcome = f"FAILED with {type(error).__name__}"
            if len(failed) < SHOWN_FAILURES:
                print(f"case {number}:", file=sys.stderr)
                traceback.print_exc()
            failed.append(number)
        outcomes[outcome] += 1
    return outcomes, failed


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=[*TARGETS, "all"])
    parser.add_argument("--count", type=int, default=1_000, help="number of cases of each target, at most")
    parser.add_argument("--minutes", type=float, help="time for each target, in place of a number of cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of a single case")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    count = options.count if options.minutes is None else sys.maxsize
    numbers = range(count) if options.only is None else range(options.only, options.only + 1)
    failures = 0
    for name in TARGETS if options.target == "all" else [options.target]:
        begin = time.monotonic()
        end = math.inf if options.minutes is None else begin + 60 * options.minutes
        outcomes, failed = run(TARGETS[name], numbers, options.seed, end)
        failures += len(failed)
        for outcome, cases in outcomes.most_common():
            print(f"{cases:>9,}  {outcome}")
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        seconds = time.monotonic() - begin
        print(f"{name}: {outcomes.total():,} cases in {seconds:.0f} s, at most {size:,.0f} MiB", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
