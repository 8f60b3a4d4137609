"""How far a worker has come, said at times."""

from __future__ import annotations

import time
from collections.abc import Collection

import structlog

from pipeline.task.task import Task
from pipeline.worker.partition import Partition

LOG_INTERVAL = 10.0
"""Seconds between two log lines."""

_log = structlog.get_logger()


class Progress:
    """Counts from where each partition began, so that what was restored is not taken for work done."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Start over: no partition is held."""
        self._since = time.monotonic()
        self._predicted = self._folded = 0

    def begin(self, task: Task) -> None:
        """Count on from where a task is."""
        self._predicted += task.predicted
        self._folded += task.model.folded

    def report(self, partitions: Collection[Partition]) -> None:
        """Log what was restored and processed since the last report, if one is due."""
        seconds = time.monotonic() - self._since
        if seconds < LOG_INTERVAL:
            return
        for partition in partitions:
            if partition.records_left:
                _log.info("restoring", partition=partition.number, records_left=partition.records_left)
        tasks = [partition.task for partition in partitions if partition.running]
        predicted = sum(task.predicted for task in tasks)
        folded = sum(task.model.folded for task in tasks)
        if (predicted, folded) != (self._predicted, self._folded):
            rate = round((predicted - self._predicted) / seconds)
            _log.info("progress", predictions=predicted, outcomes=folded, predictions_per_s=rate)
        self._since, self._predicted, self._folded = time.monotonic(), predicted, folded
