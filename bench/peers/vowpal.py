"""Vowpal Wabbit on events in its text format; runs in an environment of its own.

Each event is scored without its label, and then learned with it. So its text is parsed twice, as by a service
that is asked for a score first and told the label later.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from vowpalwabbit import Workspace

PROGRESS = 5_000
"""Events between two lines of progress."""


def main() -> None:
    """Write what is predicted of each event as a JSON list, and print the seconds that it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", required=True, type=Path, help="a line for each: label, blank, features")
    parser.add_argument("--predictions", required=True, type=Path, help="file for the predictions")
    parser.add_argument("--options", required=True, help="options of Vowpal Wabbit")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    given = parser.parse_args()
    events = [line.split(" ", 1) for line in given.events.read_text().splitlines()]
    model = Workspace(f"--quiet {given.options}")
    predicted, begin = [], time.perf_counter()
    for number, (label, features) in enumerate(events, 1):
        predicted.append(model.predict(features))
        model.learn(f"{label} {features}")
        if not given.quiet and number % PROGRESS == 0:
            print(f"{number:,} of {len(events):,} rows", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - begin
    model.finish()
    given.predictions.write_text(json.dumps(predicted))
    print(seconds)


if __name__ == "__main__":
    main()
