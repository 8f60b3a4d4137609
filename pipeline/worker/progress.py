"""Log a worker's progress from time to time."""

from __future__ import annotations

import time
from collections.abc import Collection

import structlog

from pipeline.task.task import Task
from pipeline.worker.partition import Partition

LOG_INTERVAL = 10.0
"""Seconds between two reports."""

_log = structlog.get_logger()


class Progress:
    """Counts what partitions do from where each began here, without what was restored."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Start over, without partitions."""
        self._since = time.monotonic()
        self._predicted = self._learned = 0

    def begin(self, task: Task) -> None:
        """Count a task from where it is."""
        self._predicted += task.predicted
        self._learned += task.model.outcomes_learned

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
        learned = sum(task.model.outcomes_learned for task in tasks)
        if (predicted, learned) != (self._predicted, self._learned):
            rate = round((predicted - self._predicted) / seconds)
            _log.info("progress", predictions=predicted, outcomes=learned, predictions_per_s=rate)
        self._since, self._predicted, self._learned = time.monotonic(), predicted, learned
