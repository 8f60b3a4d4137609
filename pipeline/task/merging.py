"""Merge both inputs by time, compiled: which of the buffered messages come next, and in which order."""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit

Integers: TypeAlias = NDArray[np.int64]

NO_TIMESTAMP = -1
"""Before any timestamp."""


@njit(cache=True)
def merge(
    interaction_times: Integers,
    label_times: Integers,
    more_interactions: bool,
    more_labels: bool,
    latest: int,
    max_messages: int,
    labels_before: Integers,
    interactions_before: Integers,
) -> tuple[int, int, int]:
    """Merge by timestamp, labels first on ties, each input in its own order, until a message has to wait.

    Parameters
    ----------
    interaction_times, label_times
        Times of interactions, shape (n,), and labels, shape (m,), in milliseconds.
    more_interactions, more_labels
        Whether more of them may come, which the other input then waits for.
    latest
        Latest time of a message to merge, in milliseconds.
    max_messages
        Most messages to merge.
    labels_before
        Written: labels merged before each interaction, shape (n,).
    interactions_before
        Written: interactions merged before each label, shape (m,).

    Returns
    -------
    tuple
        Interactions and labels merged, and the latest time among them, `NO_TIMESTAMP` if there are none.
    """
    n = m = 0
    time = NO_TIMESTAMP
    while n + m < max_messages:
        if n < interaction_times.shape[0] and m < label_times.shape[0]:
            label = label_times[m] <= interaction_times[n]
        elif n < interaction_times.shape[0] and not more_labels:
            label = False
        elif m < label_times.shape[0] and not more_interactions:
            label = True
        else:
            break
        head = label_times[m] if label else interaction_times[n]
        if head > latest:
            break
        time = max(time, head)
        if label:
            interactions_before[m] = n
            m += 1
        else:
            labels_before[n] = m
            n += 1
    return n, m, time


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    nothing = np.empty(0, dtype=np.int64)
    merge(nothing, nothing, True, True, 0, 0, nothing, nothing)
