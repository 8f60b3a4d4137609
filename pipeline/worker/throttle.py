"""Holding a partition back in which too much turns into dead letters."""

from __future__ import annotations

import time
from collections import Counter

import structlog

MINUTE = 60.0
"""Seconds that each partition's dead letters are counted over, from the first of them on."""

_log = structlog.get_logger()


class DeadLetterThrottle:
    """Counts dead letters, and tells which partitions have to wait.

    A producer gone wrong can fill the topic of dead letters, and the disk under it, at the speed at which
    the worker reads. A partition that has as many dead letters as a minute may have waits until it is over;
    its inputs keep what is not processed, so nothing is lost.

    Parameters
    ----------
    limit
        Dead letters that a partition may have in a minute. The batch that reaches it is finished.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._minute_starts: dict[int, float] = {}
        self._counts: Counter[int] = Counter()

    def dead_letters(self, partition: int) -> int:
        """Dead letters of the minute under way."""
        self._end_minute(partition)
        return self._counts[partition]

    def is_throttled(self, partition: int) -> bool:
        """Whether a partition has to wait."""
        return self.dead_letters(partition) >= self._limit

    def note(self, partition: int, dead_letters: int) -> None:
        """Count dead letters that were written."""
        if not dead_letters:
            return
        was_throttled = self.is_throttled(partition)
        begin = self._minute_starts.setdefault(partition, time.monotonic())
        self._counts[partition] += dead_letters
        if self.is_throttled(partition) and not was_throttled:
            _log.warning(
                "too many dead letters: the partition is paused for the rest of the minute",
                partition=partition,
                dead_letters=self._counts[partition],
                limit=self._limit,
                wait_s=round(begin + MINUTE - time.monotonic(), 1),
            )

    def _end_minute(self, partition: int) -> None:
        begin = self._minute_starts.get(partition)
        if begin is not None and time.monotonic() - begin >= MINUTE:
            del self._minute_starts[partition], self._counts[partition]
