"""Counts of what was committed, since this process has started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def _zeros(names: Iterable[str]) -> Mapping[str, int]:
    return MappingProxyType(dict.fromkeys(names, 0))


class Counts(NamedTuple):
    """What was committed of one partition, from task to task. Never changed: another thread can read it."""

    input_records: Mapping[str, int] = _zeros(INPUTS)
    """By input."""
    output_records: Mapping[str, int] = _zeros(OUTPUTS)
    """By output topic."""
    outcomes: Mapping[str, int] = _zeros(STATUSES)
    """By status."""
    dead_letters: Mapping[str, int] = _zeros(FAULTS)
    """By reason."""
    duplicates: Mapping[str, int] = _zeros(INPUTS)
    """Records that repeat one before, by input."""
    labels_before_interaction: int = 0
    crowded_out: int = 0
    """Predictions that expired early, because too many waited."""
    snapshots: int = 0
    dead_letters_cut: int = 0
    """Dead letters that have not all of their message, which is too large for their topic."""

    def add(
        self, batch: Batch, counted: Mapping[str, int], checkpoints: int, *, snapshot: bool, cut: int = 0
    ) -> Counts:
        """Return the counts with those of a batch that was committed.

        Parameters
        ----------
        batch
            The batch.
        counted
            What the task's counters grew by.
        checkpoints
            Records that were written to the topic of checkpoints.
        snapshot
            Whether a snapshot was among them.
        cut
            How many of the batch's dead letters were cut.
        """
        outcomes, corrected = batch.outcomes, len(batch.outcomes.corrections)
        expired = int(np.count_nonzero(outcomes.expired))
        outputs = {
            "predictions": batch.predictions.records,
            "outcomes": len(outcomes),
            "dead_letters": len(batch.dead_letters),
            "label_requests": len(batch.requested),
            "shared": len(batch.shares),
            "checkpoints": checkpoints,
        }
        statuses = {
            "labelled": len(outcomes) - expired - corrected,
            "expired": expired,
            "replaced" if outcomes.replaces else "corrected": corrected,
        }
        duplicates = {name: counted.get(f"duplicate_{name}", 0) for name in INPUTS}
        return Counts(
            _sum(self.input_records, counted),
            _sum(self.output_records, outputs),
            _sum(self.outcomes, statuses),
            _sum(self.dead_letters, counted),
            _sum(self.duplicates, duplicates),
            self.labels_before_interaction + counted.get("early", 0),
            self.crowded_out + counted.get("crowded_out", 0),
            self.snapshots + snapshot,
            self.dead_letters_cut + cut,
        )


def _sum(counts: Mapping[str, int], more: Mapping[str, int]) -> Mapping[str, int]:
    return {**counts, **{name: counts[name] + count for name, count in more.items() if name in counts}}
