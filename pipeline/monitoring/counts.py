"""Counts of what was committed, since this process has started."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from pipeline.records.names import Fault
from pipeline.task.batch import Batch

INPUTS: Final = ("interactions", "labels")
"""The inputs by their role."""
OUTPUTS: Final = ("predictions", "outcomes", "dead_letters", "label_requests", "shared", "checkpoints")
"""The output topics by their role."""
STATUSES: Final = ("labelled", "expired", "corrected", "replaced")
"""See `pipeline.records.fields.Status`."""
FAULTS: Final = tuple(fault.value for fault in Fault)
NO_COUNTS: Final[Mapping[str, int]] = MappingProxyType({})


class CountFigures(NamedTuple):
    """What was committed of one partition."""

    inputs: Mapping[str, int]
    """Records by input."""
    outputs: Mapping[str, int]
    """Records by output topic."""
    outcomes: Mapping[str, int]
    """Outcomes by status."""
    dead_letters: Mapping[str, int]
    """By reason."""
    duplicates: Mapping[str, int]
    """Records by input that repeat one before."""
    early: int
    """Labels that came before their interaction."""
    crowded_out: int
    """Predictions that expired early, because too many waited."""
    snapshots: int


class PartitionCounts:
    """Counts the committed batches of one partition, from task to task."""

    def __init__(self) -> None:
        self._base: Mapping[str, int] = {}
        """The task's counters up to which all is counted."""
        self._disposed: Counter[str] = Counter()
        """Sum of what the tasks' counters have grown by."""
        self._outputs: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._snapshots = 0

    def begin_task(self, counters: Mapping[str, int]) -> None:
        """Count from here on: a task was restored, or is used again."""
        self._base = dict(counters)

    def add(self, batch: Batch, counters: Mapping[str, int], checkpoints: int, *, snapshot: bool) -> None:
        """Count a batch that was committed.

        Parameters
        ----------
        batch
            The batch.
        counters
            A copy of the task's counters after it.
        checkpoints
            Records that were written to the topic of checkpoints.
        snapshot
            Whether a snapshot was among them.
        """
        base, self._base = self._base, counters
        for name, count in counters.items():
            if count != base.get(name, 0):
                self._disposed[name] += count - base.get(name, 0)
        outcomes, outputs = batch.outcomes, self._outputs
        outputs["predictions"] += batch.predictions.records
        outputs["outcomes"] += len(outcomes)
        outputs["dead_letters"] += len(batch.dead_letters)
        outputs["label_requests"] += len(batch.requested)
        outputs["shared"] += len(batch.shares)
        outputs["checkpoints"] += checkpoints
        expired = int(np.count_nonzero(outcomes.expired))
        self._statuses["expired"] += expired
        self._statuses["labelled"] += len(outcomes) - expired - len(outcomes.corrected)
        self._statuses["replaced" if outcomes.replaces else "corrected"] += len(outcomes.corrected)
        self._snapshots += snapshot

    @property
    def figures(self) -> CountFigures:
        """What was counted so far."""
        found = self._disposed
        return CountFigures(
            {name: found[name] for name in INPUTS},
            {name: self._outputs[name] for name in OUTPUTS},
            {status: self._statuses[status] for status in STATUSES},
            {fault: found[fault] for fault in FAULTS},
            {name: found[f"duplicate_{name}"] for name in INPUTS},
            found["early"],
            found["crowded_out"],
            self._snapshots,
        )
