"""The next messages of both inputs in their common order, as far as they can be processed together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.join.tables import Join
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.input_columns import InputColumns
from pipeline.task.merging import Integers, merge
from pipeline.task.record_queue import RecordQueue

MAX_TIME = 2**62
"""Latest time that the compiled merge accepts."""


class MergedMessages(NamedTuple):
    """The next messages of both inputs, and their order."""

    interactions: InputColumns
    labels: InputColumns
    interaction_times: Integers
    """Those of the interactions."""
    label_times: Integers
    """Those of the labels."""
    labels_before: Integers
    """How many come before each interaction."""
    interactions_before: Integers
    """How many come before each label."""
    time: int
    """Stream time after them, if it was not ahead of them."""

    @property
    def half(self) -> int:
        """Half of their number."""
        return (len(self.interactions) + len(self.labels)) // 2

    def before_interaction(self, row: int) -> int:
        """Return how many messages come before an interaction."""
        return row + int(self.labels_before[row])

    def before_label(self, row: int) -> int:
        """Return how many messages come before a label."""
        return row + int(self.interactions_before[row])


def merge_queued(
    interactions: RecordQueue, labels: RecordQueue, join: Join, max_messages: int, end: int | None = None
) -> MergedMessages:
    """Merge buffered messages up to one that has to wait, cannot be used, or makes an early label overdue.

    Parameters
    ----------
    interactions, labels
        Queues of the inputs; nothing is removed from them.
    join
        Tables with the deadline of the next early label.
    max_messages
        Most messages to merge.
    end
        All merged messages are of earlier times; None for any time.
    """
    interaction_times, more_interactions = _peek(interactions, max_messages, end)
    label_times, more_labels = _peek(labels, max_messages, end)
    labels_before, interactions_before = np.empty((2, max_messages), dtype=np.int64)
    n, m, time = merge(
        interaction_times,
        label_times,
        more_interactions,
        more_labels,
        min(join.early_deadline(), MAX_TIME),
        max_messages,
        labels_before,
        interactions_before,
    )
    return MergedMessages(
        interactions.columns(n),
        labels.columns(m),
        interaction_times[:n],
        label_times[:m],
        labels_before[:n],
        interactions_before[:m],
        time,
    )


def _peek(queue: RecordQueue, max_messages: int, end: int | None) -> tuple[Integers, bool]:
    """Return merge times up to one that cannot be used or is too late, and whether more may come."""
    times = np.frombuffer(queue.peek(max_messages), dtype=np.int64)
    more = len(times) < len(queue) or not queue.at_end
    if len(times) and times.min() == NO_TIMESTAMP:
        times, more = times[: np.argmin(times)], True
    if end is not None and len(times) and times.max() >= end:
        times, more = times[: np.argmax(times >= end)], True
    return times, more
