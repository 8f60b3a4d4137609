"""Time as a worker reads it, whatever somebody does to the machine's clock."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

_BEGIN: Final = time.time() - time.monotonic()


def wall_clock() -> int:
    """Milliseconds since 1970, by a clock that follows the machine's forwards and never backwards.

    A clock that is set back would have the events of this very moment lie in the future.
    """
    return int(1000 * max(time.time(), _BEGIN + time.monotonic()))


class Silence(NamedTuple):
    """A time in which nothing comes, and stream time goes on by itself.

    It goes on as fast as time passes by a clock that nobody can set, so that a step of the wall clock lets
    nothing expire.

    Examples
    --------
    >>> Silence(stream_time=70_000, since=10.0).passed(13.5)
    73500
    """

    stream_time: int
    """What it was at the beginning, in milliseconds."""
    since: float
    """When it began, by the monotonic clock, in seconds."""

    def passed(self, now: float) -> int:
        """What stream time has come to when the monotonic clock shows `now`."""
        return self.stream_time + int(1000 * (now - self.since))
