"""Merge both inputs by time, compiled: which of the buffered messages come next, and in which order."""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import ZERO, njit
from pipeline.join.actions import Message
from pipeline.task.record_queue import RecordQueue

Integers: TypeAlias = NDArray[np.int64]

# As plain numbers, which NumPy compares at a third of the cost.
INTERACTION, LABEL, REJECTED = int(Message.INTERACTION), int(Message.LABEL), int(Message.REJECTED)

NO_TIMESTAMP = -1
"""Before any timestamp: that of a message that cannot be used."""


class Merged(NamedTuple):
    """The next messages of both inputs, in their common order."""

    kinds: NDArray[np.uint8]
    """`Message` of each, shape (messages,)."""
    rows: Integers
    """Its place among the messages of its input; of what cannot be used, that of a label comes behind all
    interactions."""
    times: Integers
    """In milliseconds; `NO_TIMESTAMP` of what cannot be used."""
    interactions: int
    """How many messages of interactions there are."""
    labels: int

    def first(self, count: int) -> Merged:
        """Return the first of them."""
        if count == len(self.kinds):
            return self
        kinds, rows = self.kinds[:count], self.rows[:count].copy()
        rejected_labels = (kinds == REJECTED) & (rows >= self.interactions)
        labels = int(np.count_nonzero(rejected_labels | (kinds == LABEL)))
        rows[rejected_labels] -= self.interactions - (count - labels)
        return Merged(kinds, rows, self.times[:count], count - labels, labels)


def merge_queued(
    interactions: RecordQueue, labels: RecordQueue, max_messages: int, end: int | None = None
) -> Merged:
    """Merge buffered messages up to one that has to wait. Nothing is removed from the queues.

    Parameters
    ----------
    interactions, labels
        Queues of the inputs.
    max_messages
        Most messages to merge.
    end
        All merged messages are of earlier times; None for any time.
    """
    interaction_times, more_interactions = _peek(interactions, max_messages, end)
    label_times, more_labels = _peek(labels, max_messages, end)
    room = min(max_messages, len(interaction_times) + len(label_times))
    kinds = np.empty(room, dtype=np.uint8)
    rows, times = np.empty((2, room), dtype=np.int64)
    n, m = merge(
        interaction_times,
        label_times,
        more_interactions,
        more_labels,
        kinds,
        rows,
        times,
    )
    merged = Merged(kinds[: n + m], rows[: n + m], times[: n + m], n, m)
    rejected = merged.times == NO_TIMESTAMP
    if rejected.any():
        merged.rows[rejected & (merged.kinds == LABEL)] += n
        merged.kinds[rejected] = REJECTED
    return merged


def _peek(queue: RecordQueue, max_messages: int, end: int | None) -> tuple[Integers, bool]:
    """Return merge times up to one that is too late, and whether more may come that are not."""
    times = np.frombuffer(queue.peek(max_messages), dtype=np.int64)
    more = len(times) < len(queue) or not queue.at_end
    if end is not None and len(times) and times.max() >= end:
        times, more = times[: np.argmax(times >= end)], False  # the other input need not wait for those
    return times, more


@njit(cache=True)
def merge(
    interaction_times: Integers,
    label_times: Integers,
    more_interactions: bool,
    more_labels: bool,
    kinds: NDArray[np.uint8],
    rows: Integers,
    times: Integers,
) -> tuple[int, int]:
    """Merge by timestamp, labels first on ties, each input in its own order, until a message has to wait.

    Parameters
    ----------
    interaction_times, label_times
        Times of interactions, shape (n,), and labels, shape (m,), in milliseconds.
    more_interactions, more_labels
        Whether more of them may come, which the other input then waits for.
    kinds, rows, times
        Written: what each merged message is, its place in its input, and its time.

    Returns
    -------
    tuple
        Interactions and labels merged.
    """
    n = m = ZERO
    while n + m < len(kinds):
        if n < interaction_times.shape[0] and m < label_times.shape[0]:
            label = label_times[m] <= interaction_times[n]
        elif n < interaction_times.shape[0] and not more_labels:
            label = False
        elif m < label_times.shape[0] and not more_interactions:
            label = True
        else:
            break
        at = n + m
        kinds[at] = label
        if label:
            rows[at], times[at] = m, label_times[m]
            m += 1
        else:
            rows[at], times[at] = n, interaction_times[n]
            n += 1
    return n, m


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    nothing = np.empty(0, dtype=np.int64)
    merge(nothing, nothing, True, True, nothing.astype(np.uint8), nothing, nothing)
