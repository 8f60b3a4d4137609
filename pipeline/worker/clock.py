"""The wall clock, and stream time while no records arrive."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from pipeline.task.batch import Batch
from pipeline.task.task import Task

_CLOCK_OFFSET: Final = time.time() - time.monotonic()


def wall_clock() -> int:
    """Milliseconds since 1970, by a clock that follows the machine's forwards and never backwards.

    A clock that is set back would have the events of this very moment lie in the future.
    """
    return int(1000 * max(time.time(), _CLOCK_OFFSET + time.monotonic()))


class IdlePeriod(NamedTuple):
    """A time in which nothing comes, and stream time goes on by itself.

    It goes on as fast as time passes by a clock that nobody can set, so that a step of the wall clock lets
    nothing expire.

    Examples
    --------
    >>> IdlePeriod(stream_time=70_000, since=10.0).stream_time_at(13.5)
    73500
    """

    stream_time: int
    """What it was at the beginning, in milliseconds."""
    since: float
    """When it began, by the monotonic clock, in seconds."""

    def stream_time_at(self, now: float) -> int:
        """What stream time has come to when the monotonic clock shows `now`."""
        return self.stream_time + int(1000 * (now - self.since))


PUNCTUATION_INTERVAL = 1.0
"""Seconds between two moves of a partition's stream time, where there is not more to close."""


class IdleAdvance:
    """Lets the stream time of partitions whose inputs are at their ends go on by itself.

    Parameters
    ----------
    distance
        Milliseconds by which it stays behind.
    """

    def __init__(self, lag: int) -> None:
        self._lag = lag
        self._idle_periods: dict[int, IdlePeriod] = {}
        self._last_punctuation = time.monotonic()

    def clear(self) -> None:
        """Forget since when nothing comes."""
        self._idle_periods.clear()

    def punctuate(
        self, tasks: Mapping[int, Task], batches: dict[int, Batch], limit: int, busy: bool
    ) -> set[int]:
        """Move on the partitions whose batches are empty.

        Parameters
        ----------
        tasks
            By partition.
        batches
            What came of the inputs; what comes of time takes the places of those that are empty.
        limit
            Most steps in a batch.
        busy
            Whether the last batches left something to do.

        Returns
        -------
        set of int
            The partitions whose stream time has moved.
        """
        now = time.monotonic()
        due = busy or now - self._last_punctuation >= PUNCTUATION_INTERVAL
        moved = set()
        for partition, batch in batches.items():
            task = tasks[partition]
            if not (batch.empty and task.interactions.at_end and task.labels.at_end):
                self._idle_periods.pop(partition, None)
            elif due:
                idle_period = self._idle_periods.setdefault(partition, IdlePeriod(task.stream_time, now))
                batches[partition] = task.punctuate(idle_period.stream_time_at(now) - self._lag, limit)
                moved.add(partition)
        if due:
            self._last_punctuation = now
        return moved
