"""Stop a command by a signal."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on the first SIGINT or SIGTERM; a second one has its usual effect.

    Parameters
    ----------
    stop
        Called in the main thread by the signal handler.
    """

    def handle(number: int, _: FrameType | None) -> None:
        signal.signal(number, before[number])  # before `stop`, for a second signal that comes at once
        stop()

    numbers: tuple[int, ...] = signal.SIGINT, signal.SIGTERM
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
