"""Microseconds an event."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median


def microseconds(action: Callable[[], object], events: int, runs: int) -> float:
    """Return the median over ``runs`` of what ``action``, on ``events`` events, takes for each of them.

    A run before them, that compiles and fills what is kept, does not count.
    """
    action()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return round(1e6 * median(seconds) / events, 3)
