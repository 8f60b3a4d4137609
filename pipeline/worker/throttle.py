"""Pause a partition with too many dead letters."""

from __future__ import annotations

import time

import structlog

MINUTE = 60.0
"""Seconds over which a partition's dead letters are counted, from the first of them on."""

_log = structlog.get_logger()


class DeadLetterThrottle:
    """Counts a partition's dead letters, and pauses it for the rest of a minute with too many.

    A faulty producer can fill the topic of dead letters, and the disk under it, as fast as the worker reads.
    A paused partition loses nothing: its inputs keep what is not processed.

    Parameters
    ----------
    partition
        The partition's number, for the log.
    limit
        Dead letters in a minute at which the partition is paused. The batch that reaches it is finished.
    """

    def __init__(self, partition: int, limit: int) -> None:
        self._partition = partition
        self._limit = limit
        self._minute_start: float | None = None
        self._count = 0

    @property
    def dead_letters(self) -> int:
        """Dead letters of the current minute."""
        if self._minute_start is not None and time.monotonic() - self._minute_start >= MINUTE:
            self._minute_start, self._count = None, 0
        return self._count

    @property
    def active(self) -> bool:
        """Whether the partition is paused."""
        return self.dead_letters >= self._limit

    def note(self, dead_letters: int) -> None:
        """Count dead letters that were written."""
        if not dead_letters:
            return
        was_active = self.active
        if self._minute_start is None:
            self._minute_start = time.monotonic()
        self._count += dead_letters
        if self.active and not was_active:
            _log.warning(
                "too many dead letters: the partition is paused for the rest of the minute",
                partition=self._partition,
                dead_letters=self._count,
                limit=self._limit,
                wait_s=round(self._minute_start + MINUTE - time.monotonic(), 1),
            )
