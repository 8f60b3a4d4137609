"""Stopping in good order."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on the first SIGINT or SIGTERM; the second one does what it would have done without."""

    def handle(number: int, _: FrameType | None) -> None:
        signal.signal(number, before[number])  # first, so that a second one at once is not lost
        stop()

    numbers: tuple[int, ...] = signal.SIGINT, signal.SIGTERM
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
