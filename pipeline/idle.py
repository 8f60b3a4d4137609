"""Stream time while nothing comes."""

from __future__ import annotations

import time
from collections.abc import Mapping

from pipeline.batch import Batch
from pipeline.clock import Silence
from pipeline.task import Task

EVERY = 1.0
"""Seconds between two moves of a partition's stream time, where there is not more to close."""


class IdleTime:
    """Lets the stream time of partitions whose inputs are at their ends go on by itself.

    Parameters
    ----------
    distance
        Milliseconds by which it stays behind.
    """

    def __init__(self, distance: int) -> None:
        self._distance = distance
        self._silences: dict[int, Silence] = {}
        self._ticked = time.monotonic()

    def clear(self) -> None:
        """Forget since when nothing comes."""
        self._silences.clear()

    def tick(self, tasks: Mapping[int, Task], batches: dict[int, Batch], limit: int, busy: bool) -> set[int]:
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
        due = busy or now - self._ticked >= EVERY
        moved = set()
        for partition, batch in batches.items():
            task = tasks[partition]
            if not (batch.empty and task.interactions.at_end and task.labels.at_end):
                self._silences.pop(partition, None)
            elif due:
                silence = self._silences.setdefault(partition, Silence(task.stream_time, now))
                batches[partition] = task.tick(silence.passed(now) - self._distance, limit)
                moved.add(partition)
        if due:
            self._ticked = now
        return moved
