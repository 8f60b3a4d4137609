"""Wait for partitions that others share with, but not for ever."""

from __future__ import annotations

import time

import structlog

from pipeline.task.inbox import Inbox

_log = structlog.get_logger()


class LatePartitions:
    """The partitions that one partition waits for, with `sharing.align`.

    Parameters
    ----------
    partition
        The number of the partition that waits.
    max_wait
        How long it waits, in milliseconds.

    Attributes
    ----------
    waiting
        Whether it waits.
    """

    def __init__(self, partition: int, max_wait: int) -> None:
        self.waiting = False
        self._partition = partition
        self._max_wait = max_wait / 1000
        self._since = 0.0

    def check(self, inbox: Inbox) -> None:
        """Note which shares are missing, and wait no longer for those that have been for too long."""
        missing = inbox.missing
        if not missing:
            self.waiting = False
        elif not self.waiting:
            self.waiting, self._since = True, time.monotonic()
        elif time.monotonic() - self._since >= self._max_wait:
            self.waiting = False
            inbox.time_out(missing)
            _log.warning(
                "continuing without late partitions: a replay may differ from here on",
                partition=self._partition,
                missing=missing,
                waited_s=round(self._max_wait, 3),
            )
