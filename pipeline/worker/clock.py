"""The wall clock, and stream time while no records arrive."""

from __future__ import annotations

import math
import time
from typing import Final, NamedTuple

_CLOCK_OFFSET: Final = time.time() - time.monotonic()


def wall_clock() -> int:
    """Return milliseconds since 1970, by a clock that follows the machine's forwards and never backwards.

    By a clock that is set back, the events of this very moment would lie in the future.
    """
    return int(1000 * max(time.time(), _CLOCK_OFFSET + time.monotonic()))


class IdlePeriod(NamedTuple):
    """A time without messages, in which stream time moves as fast as the monotonic clock.

    Nobody can set that clock, so a step of the wall clock lets nothing expire.

    Examples
    --------
    >>> IdlePeriod(stream_time=70_000, since=10.0).stream_time_at(13.5)
    73500
    """

    stream_time: int
    """Stream time at the beginning, in milliseconds."""
    since: float
    """When the period began, by the monotonic clock, in seconds."""

    def stream_time_at(self, now: float) -> int:
        """Return stream time, in milliseconds, when the monotonic clock shows `now`, in seconds."""
        return self.stream_time + int(1000 * (now - self.since))


PUNCTUATION_INTERVAL = 1.0
"""Seconds between two moves of a partition's stream time, unless the worker has more to do at once."""


class IdleAdvance:
    """Moves the stream time of a partition whose inputs are at their ends.

    Parameters
    ----------
    lag
        Milliseconds by which stream time stays behind.
    """

    def __init__(self, lag: int) -> None:
        self._lag = lag
        self._period: IdlePeriod | None = None
        self._last_punctuation = -math.inf

    def reset(self) -> None:
        """End the idle period: a message has arrived, or more may be there."""
        self._period = None

    def stream_time(self, current: int, *, busy: bool) -> int | None:
        """Return where the stream time of an idle partition is to move.

        Parameters
        ----------
        current
            Stream time now, in milliseconds.
        busy
            Whether the worker has more to do at once, for example more predictions to close.

        Returns
        -------
        int or None
            Milliseconds; None until the next punctuation is due.
        """
        now = time.monotonic()
        if not busy and now - self._last_punctuation < PUNCTUATION_INTERVAL:
            return None
        self._last_punctuation = now
        if self._period is None:
            self._period = IdlePeriod(current, now)
        return self._period.stream_time_at(now) - self._lag
