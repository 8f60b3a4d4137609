"""Stop a command by a signal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def _exit() -> None:
    sys.exit(0)


class StopRequest:
    """What a signal asks to stop: the start of the process, until something runs that can finish its work.

    Parameters
    ----------
    end
        Ends the process while nothing runs, with 0; by default, where it is called in the main thread.

    Examples
    --------
    >>> stopped = []
    >>> request = StopRequest()
    >>> request.pass_to(lambda: stopped.append(True))
    >>> request()
    >>> stopped
    [True]
    """

    def __init__(self, end: Callable[[], object] = _exit) -> None:
        self._end = end
        self._requested = False
        self._stop: Callable[[], None] | None = None

    def __call__(self) -> None:
        """Stop what runs, or end the process."""
        self._requested = True
        if self._stop is None:
            self._end()
        else:
            self._stop()

    def pass_to(self, stop: Callable[[], None]) -> None:
        """Stop by this function from here on, also if the request came before and did not end the process.

        Parameters
        ----------
        stop
            Lets what runs finish its work.
        """
        self._stop = stop
        if self._requested:  # the exception was lost in code that does not pass it on
            stop()


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
